from pynq_torch.cli import main

raise SystemExit(main())
