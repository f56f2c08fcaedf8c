"""The hub with SystemdSpawner, which limits memory and processors of a user as a whole. Untried.

    pip install jupyterhub-systemdspawner
    jupyterhub -f deploy/hub/systemd.py

The users are those of the server, and have their homes there.
"""

from pathlib import Path

c = get_config()  # noqa: F821  JupyterHub defines it
load_subconfig(str(Path(__file__).with_name("jupyterhub_config.py")))  # noqa: F821

c.JupyterHub.spawner_class = "systemd"
c.Spawner.pre_spawn_hook = None
c.Spawner.cmd = ["jupyterhub-singleuser"]
c.SystemdSpawner.mem_limit = "4G"
c.SystemdSpawner.cpu_limit = 2.0
c.SystemdSpawner.isolate_tmp = True
c.SystemdSpawner.isolate_devices = True
c.SystemdSpawner.disable_user_sudo = True
c.SystemdSpawner.readonly_paths = ["/"]
c.SystemdSpawner.readwrite_paths = ["/home/{USERNAME}", "/srv/pynq_torch/exchange"]
c.SystemdSpawner.unit_extra_properties = {"TasksMax": "512", "LimitFSIZE": "2G"}
