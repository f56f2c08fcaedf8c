#!/usr/bin/env bash
# Make an Amazon FPGA Image (AFI) of a design checkpoint, for an F2 instance:
#   create_afi.sh CHECKPOINT.tar BUCKET NAME [REGION]
# CHECKPOINT.tar is what the vendor's build for F2 leaves (aws-fpga, branch f2, HDK README steps 4 and
# 5). The arguments are those of its step 6. Nobody has run this with an account yet.
set -euo pipefail

if [ $# -lt 3 ] || [ $# -gt 4 ]; then
  sed -n 's/^#   //p' "$0" >&2
  exit 2
fi
checkpoint=$1 bucket=$2 name=$3 region=${4:-us-east-1}
command -v aws >/dev/null || { echo "no aws on the PATH: install the AWS CLI" >&2; exit 1; }
tar -tf "$checkpoint" >/dev/null || { echo "$checkpoint is no tarball of a checkpoint" >&2; exit 1; }

aws s3 cp "$checkpoint" "s3://$bucket/$name/dcp.tar" --region "$region"
read -r afi agfi < <(aws ec2 create-fpga-image --region "$region" \
  --name "$name" --description "pynq_torch: $name" \
  --input-storage-location "Bucket=$bucket,Key=$name/dcp.tar" \
  --logs-storage-location "Bucket=$bucket,Key=$name/logs/" \
  --query '[FpgaImageId,FpgaImageGlobalId]' --output text) ||
  { echo "create-fpga-image gave no image" >&2; exit 1; }
echo "AFI $afi, AGFI $agfi"

# It takes about an hour; three are the bound.
for _ in $(seq "${AFI_POLLS:-180}"); do
  state=$(aws ec2 describe-fpga-images --region "$region" --fpga-image-ids "$afi" \
    --query 'FpgaImages[0].State.Code' --output text)
  case $state in
    available)
      echo "ready; on an F2 instance: sudo fpga-load-local-image -S 0 -I $agfi"
      exit 0
      ;;
    pending) sleep "${AFI_SECONDS:-60}" ;;
    *) break ;;
  esac
done
echo "$afi is $state; expected available. The logs are in s3://$bucket/$name/logs/" >&2
exit 1
