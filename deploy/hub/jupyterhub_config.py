"""JupyterHub for a class: each user's JupyterLab in a sandbox, with limits, on a board of its own.

    jupyterhub -f deploy/hub/jupyterhub_config.py

Users' homes and the hub's own files are below $HUB_FOLDER. docs/teaching.md says how many users a
server holds. systemd.py and docker.py, beside this file, start users in another way.
"""

import os
import sysconfig
from pathlib import Path

from pynq_torch.paths import NOTEBOOKS
from pynq_torch.report import sandbox

c = get_config()  # noqa: F821  JupyterHub defines it

FOLDER = Path(os.environ.get("HUB_FOLDER", "/srv/pynq_torch")).resolve()
HOMES, OWN, EXCHANGE = FOLDER / "homes", FOLDER / "hub", FOLDER / "exchange"
#: Of each process of a user, in MiB: address space, and the largest file.
MEMORY_MB, FILE_MB = 8192, 2048
#: Of each user: processes and threads.
PROCESSES = 512
#: Where root starts the hub: the first user is the next one. No account of the server has it.
FIRST_UID = 200_000

for folder in (HOMES, OWN, EXCHANGE):
    folder.mkdir(parents=True, exist_ok=True)
OWN.chmod(0o700)
EXCHANGE.chmod(0o777)
SCRIPTS = sysconfig.get_path("scripts")
os.environ["PATH"] = os.pathsep.join([SCRIPTS, os.environ["PATH"]])

c.JupyterHub.db_url = f"sqlite:///{OWN / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(OWN / "cookie_secret")
# The proxy in Python, which pip installs; the one of npm has the same name and options.
c.ConfigurableHTTPProxy.command = [f"{SCRIPTS}/configurable-http-proxy"]
c.ConfigurableHTTPProxy.pid_file = str(OWN / "proxy.pid")
c.JupyterHub.shutdown_on_logout = True
# Who may come in: users of this server, as PAM knows them. Another authenticator is a line.
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allow_all = True

# JupyterHub says of its simple spawner that it is for testing, as it starts every user as the hub's
# own user. Here each is in a sandbox and, where root starts the hub, a user of its own.
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(HOMES / "{username}")
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.Spawner.environment = {"PATH": os.environ["PATH"], "NBGRADER_EXCHANGE": str(EXCHANGE)}
if "PYTHONPATH" in os.environ:
    c.Spawner.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]


def before_spawn(spawner):
    """Make a home, and put a user's server into a sandbox."""
    home = HOMES / spawner.user.name
    home.mkdir(mode=0o700, exist_ok=True)
    uid = FIRST_UID + spawner.user.id
    if sandbox.is_root():
        os.chown(home, uid, uid)
    spawner.cmd = [
        *sandbox.sandbox([str(home), str(EXCHANGE)], [NOTEBOOKS], FILE_MB, network=True),
        *sandbox.as_user(uid),
        *("env", f"--chdir={home}"),  # not Bubblewrap's, which may not enter another user's home
        *sandbox.limits(MEMORY_MB, FILE_MB, PROCESSES),
        f"{SCRIPTS}/jupyterhub-singleuser",
    ]


c.Spawner.pre_spawn_hook = before_spawn
