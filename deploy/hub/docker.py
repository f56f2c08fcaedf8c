"""The hub with DockerSpawner: a container for each user. Untried.

pip install dockerspawner
docker build -t pynq_torch -f deploy/hub/Containerfile .
jupyterhub -f deploy/hub/docker.py
"""

from pathlib import Path

c = get_config()  # noqa: F821  JupyterHub defines it
load_subconfig(str(Path(__file__).with_name("jupyterhub_config.py")))  # noqa: F821

c.JupyterHub.spawner_class = "docker"
c.JupyterHub.hub_ip = "0.0.0.0"  # containers call the hub
c.Spawner.pre_spawn_hook = None
c.Spawner.cmd = ["jupyterhub-singleuser"]
c.Spawner.environment = {"NBGRADER_EXCHANGE": "/exchange"}
c.DockerSpawner.image = "pynq_torch"
c.DockerSpawner.remove = True
c.DockerSpawner.mem_limit = "4G"
c.DockerSpawner.cpu_limit = 2.0
c.DockerSpawner.extra_host_config = {"pids_limit": 512, "storage_opt": {"size": "10G"}}
c.DockerSpawner.volumes = {
    "pynq_torch-{username}": "/home/student",
    "/srv/pynq_torch/exchange": "/exchange",
}
