# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm cluster of two nodes on one machine: the daemons of Debian's packages in network namespaces (hosts.Hosts).
Call hosts.apart() first: the daemons then end with the script, and /run and /dev/shm are the script's own. Needs root
inside, or the right to create namespaces."""
import os
import pathlib
import shutil
import subprocess
import time

from hosts import Hosts, ip

NODES, CORES = 2, 8


def missing():
    """What this machine lacks, or ""."""
    programs = [p for p in ("munged", "slurmctld", "slurmd", "srun", "scontrol") if not shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin")]
    if programs:
        return f"the programs {', '.join(programs)} are not installed (packages munge, slurmctld, slurmd, slurm-client)"
    return "" if os.geteuid() == 0 else "the daemons need root"


class Slurm:
    """Daemons with their files in `folder`. `why` says what failed, or is ""."""

    def __init__(self, folder):
        self.folder, self.daemons, self.why = pathlib.Path(folder), [], ""
        self.hosts = Hosts("lcslurm", NODES)
        if not self.hosts.able:
            self.why = "this machine does not allow network namespaces"
            return
        # Each host sees this file as /etc/hosts. A name that the system asks a server for would take seconds.
        names = self.folder / "hosts"
        names.write_text("127.0.0.1 localhost\n10.77.0.254 head\n" + "".join(f"10.77.0.{n + 1} node{n}\n" for n in range(NODES)))
        for name in ("state", "log", *(f"spool.node{n}" for n in range(NODES))):
            (self.folder / name).mkdir()
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(f"""ClusterName=test
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
SwitchType=switch/none
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool.%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.%n.pid
SlurmctldTimeout=60
SlurmdTimeout=60
KillWait=5
NodeName=node[0-{NODES - 1}] CPUs={CORES} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
""")
        # Without a group of control files: slurmd may not move itself in one that it does not own.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainCores=no\n")
        munge = pathlib.Path("/run/munge")
        munge.mkdir(mode=0o755, exist_ok=True)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        logs = self.folder / "log"
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--log-file={logs}/munge", f"--pid-file={self.folder}/munge.pid", f"--seed-file={self.folder}/munge.seed")
        self.start(*self.inside("head", None), "slurmctld", "-D", "-i", "-f", self.configuration, "-L", logs / "slurmctld")
        for n in range(NODES):
            self.start(*self.inside(f"node{n}", n), "slurmd", "-D", "-f", self.configuration, "-L", logs / f"slurmd{n}")
        deadline = time.time() + 60
        while time.time() < deadline:
            done = subprocess.run(self.words("scontrol", "show", "nodes", "-o"), capture_output=True, text=True, timeout=60)
            if done.stdout.count("State=IDLE ") == NODES:
                return
            time.sleep(0.2)
        self.why = f"the nodes do not become idle: {done.stdout[-600:]} {done.stderr[-300:]} {self.ends()}"

    def inside(self, host, number):
        """Words before a program of a host: in its network, with its name and its own /dev/shm."""
        space = self.hosts.name if number is None else f"{self.hosts.name}{number}"
        memory = "" if number is None else "mount -t tmpfs memory /dev/shm; "
        names = f"mount --bind {self.folder}/hosts /etc/hosts; "
        return ["ip", "netns", "exec", space, "unshare", "-u", "-i", "-m", "sh", "-c", f'hostname {host}; {names}{memory}exec "$@"', "sh"]

    def start(self, *words):
        path = os.environ["PATH"] + ":/usr/sbin"
        out = (self.folder / "log" / f"out{len(self.daemons)}").open("w")
        self.daemons.append(subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(os.environ, PATH=path)))

    def words(self, *command):
        """Words that run a command of a user on the head node."""
        return [*self.inside("head", None), "env", f"SLURM_CONF={self.configuration}", *map(str, command)]

    def ends(self):
        """The last lines of the daemons."""
        return "\n".join(f"{f.name}: {f.read_text()[-400:]}" for f in sorted((self.folder / "log").iterdir()))

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.hosts.remove()
