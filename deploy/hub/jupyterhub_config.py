"""JupyterHub for a class: each user's JupyterLab in a sandbox, with limits, on a board of its own.

    jupyterhub -f deploy/hub/jupyterhub_config.py

Users' homes and the hub's own files are below $HUB_FOLDER. docs/teaching.md says how many users a
server holds. systemd.py and docker.py, beside this file, start users in another way.
"""

import os
import sysconfig
from pathlib import Path

c = get_config()  # noqa: F821  JupyterHub defines it

FOLDER = Path(os.environ.get("HUB_FOLDER", "/srv/pynq_torch")).resolve()
HOMES, OWN, EXCHANGE = FOLDER / "homes", FOLDER / "hub", FOLDER / "exchange"
#: Of each process of a user, in MiB: address space, and the largest file.
MEMORY_MB, FILE_MB = 8192, 2048
#: Of each user: processes and threads.
PROCESSES = 512

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

# Every user is the hub's own user here, which JupyterHub says is for testing; the sandbox is what
# keeps them apart: a home of its own, everything else read-only, nobody else's processes.
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(HOMES / "{username}")
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.Spawner.environment = {"PATH": os.environ["PATH"], "NBGRADER_EXCHANGE": str(EXCHANGE)}
if "PYTHONPATH" in os.environ:
    c.Spawner.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]


def sandbox(home: str) -> list[str]:
    """Return the words before a user's server: what it sees of this PC, and its limits."""
    return [
        *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"),
        *("--die-with-parent", "--cap-drop", "ALL", "--tmpfs", "/tmp", "--tmpfs", str(FOLDER)),
        *("--bind", home, home, "--bind", str(EXCHANGE), str(EXCHANGE), "--chdir", home),
        *("prlimit", f"--as={MEMORY_MB << 20}", f"--fsize={FILE_MB << 20}", "--core=0"),
        f"--nproc={PROCESSES}",
    ]


def before_spawn(spawner):
    """Make a home, and put a user's server into a sandbox."""
    home = HOMES / spawner.user.name
    home.mkdir(mode=0o700, exist_ok=True)
    spawner.cmd = [*sandbox(str(home)), f"{SCRIPTS}/jupyterhub-singleuser"]
    # As root in a container, Jupyter asks for this word.
    spawner.args = [] if os.getuid() else ["--allow-root"]


c.Spawner.pre_spawn_hook = before_spawn
