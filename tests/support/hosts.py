# SPDX-License-Identifier: BSD-3-Clause
"""Several hosts on one machine: network namespaces on a bridge in another namespace. The machine's own network does
not change. Needs root, or the right to create namespaces.

A link has a queue of its own for acknowledgements, as a full-duplex network card has. Behind megabytes of data in one
queue an acknowledgement waits, and traffic in both directions at once is 1.4 times slower (256 KiB around a ring of 8,
100 Mbit/s: 29.2 ms; 24.0 ms so). Cubic is the congestion control on every machine: bbr, where it is the default, takes
32.4 ms there."""
import json
import os
import pathlib
import subprocess
import sys
import time

from processes import end_tree


def run_until_profile(words, out, environment):
    """Runs a job, and ends it when its profile is written. Returns the profile and the job's messages. MPICH over
    TCP may hang in MPI_Finalize."""
    out.unlink(missing_ok=True)
    job = subprocess.Popen(list(map(str, words)), env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    written, deadline = 0, time.time() + 300
    while job.poll() is None and time.time() < deadline and not (written and time.time() > written + 4):
        time.sleep(0.05)
        written = written or (time.time() if out.exists() else 0)
    if job.poll() is None:
        end_tree(job)
    text = job.communicate()[0]
    if not out.exists():
        sys.exit(f"no profile: {text}")
    return json.loads(out.read_text()), text


def apart():
    """Restarts the script in namespaces of its own, which end with it: if the script or its parent is killed, no process
    and no namespace stays. A user other than root is root inside. Returns in the restarted script only. If the system
    does not allow it, unshare says so and the exit status is 1."""
    if os.environ.pop("LATECOMER_TEST_APART", "") == "1":
        return
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    # Names of network namespaces are files in /run, and MPICH and latecomer have files in /dev/shm.
    inside = 'mount -t tmpfs run /run && mount -t tmpfs shm /dev/shm && LATECOMER_TEST_APART=1 exec "$@"'
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", *own, "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "sh", "-c", inside, "sh", *sys.argv]
    sys.stdout.flush()
    os.execvp(words[0], words)


def cores():
    """Busy and all processor time so far, in ticks."""
    ticks = list(map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]))
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True).returncode == 0


class Hosts:
    """`name`0 ... `name`(count-1), from 10.77.0.1 on; mbit: rate of each link in both directions; None: unlimited."""

    # Makes MPICH use the links.
    environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
    # The same with shared memory between the ranks of a host: System V's, which IPC namespaces keep apart.
    environment_of_nodes = {"UCX_TLS": "tcp,self,sysv", "UCX_NET_DEVICES": "eth0"}

    def __init__(self, name, count, mbit=None):
        self.name, self.count = name, count
        self.remove()
        self.able = ip("netns", "add", name)
        if not self.able:
            return
        ip("-n", name, "link", "add", "br0", "type", "bridge")
        ip("-n", name, "addr", "add", "10.77.0.254/24", "dev", "br0")
        ip("-n", name, "link", "set", "br0", "up")
        ip("-n", name, "link", "set", "lo", "up")
        for r in range(count):
            space = f"{name}{r}"
            ip("netns", "add", space)
            ip("-n", name, "link", "add", f"port{r}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("-n", name, "link", "set", f"port{r}", "master", "br0", "up")
            ip("-n", space, "addr", "add", f"10.77.0.{r + 1}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "link", "set", "lo", "up")
            # After an idle time the connection keeps its speed, as in a cluster's network.
            subprocess.run(["ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv4.tcp_slow_start_after_idle=0"], capture_output=True)
            ip("-n", space, "route", "change", "10.77.0.0/24", "dev", "eth0", "proto", "kernel", "scope", "link", "src", f"10.77.0.{r + 1}", "congctl", "cubic")
            if mbit:
                ip("-n", space, "link", "set", "eth0", "gso_max_segs", "1")
                self.able = self.able and all(self.shape(where, device, mbit) for where, device in ((space, "eth0"), (name, f"port{r}")))

    @staticmethod
    def shape(space, device, mbit):
        """Limits a link's rate in one direction. Packets of less than 128 bytes go first."""
        def tc(*words):
            return subprocess.run(["tc", "-n", space, *words], capture_output=True).returncode == 0
        burst = ("burst", "4kb", "cburst", "4kb", "quantum", "1600")

        def channel(parent, number, rate, *words):
            return tc("class", "add", "dev", device, "parent", parent, "classid", number, "htb", "rate", f"{rate}kbit", "ceil", f"{mbit * 1000}kbit", *words, *burst)
        return (tc("qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "20", "r2q", "100") and channel("1:", "1:1", mbit * 1000) and
                channel("1:1", "1:10", mbit * 500, "prio", "0") and channel("1:1", "1:20", mbit * 500, "prio", "1") and
                tc("qdisc", "add", "dev", device, "parent", "1:20", "handle", "20:", "pfifo", "limit", "4000") and
                tc("filter", "add", "dev", device, "parent", "1:", "protocol", "ip", "prio", "1", "u32", "match", "u16", "0x0000", "0xff80", "at", "2", "flowid", "1:10"))

    def remove(self):
        for r in range(self.count):
            ip("netns", "del", f"{self.name}{r}")
        ip("netns", "del", self.name)

    def enter(self, path, inside='exec env LD_PRELOAD="$preload" "$@"'):
        """Writes a script that runs its arguments in the namespace of its rank, with a host name of its own: MPICH
        takes ranks with one host name for one node. The preload applies to the program only."""
        path.write_text(f"""#!/bin/sh
preload=$LD_PRELOAD; unset LD_PRELOAD
exec ip netns exec {self.name}$PMI_RANK unshare -u env PRELOAD="$preload" sh -c 'hostname host$PMI_RANK; preload=$PRELOAD; unset PRELOAD; {inside}' sh "$@"
""")
        path.chmod(0o755)
        return path

    def launch(self, path, per_host, own_memory=False, open_mpi=False, in_turn=False, spaces="", first=""):
        """Words that start a launcher with `per_host` ranks on each host, as a cluster does: one proxy per host, so that
        MPI knows the nodes. Ranks of a host are consecutive, or with in_turn the hosts take turns. They use its shared
        memory. Set `environment_of_nodes`. `path`: of a script that this function writes; the launcher starts it
        instead of ssh. own_memory: each host has a /dev/shm of its own. spaces: further options of unshare. first:
        commands of the shell that starts the proxy. Both may use $host."""
        spaces, first = ("-u -i -m " + spaces, "mount -t tmpfs memory /dev/shm; " + first) if own_memory else ("-u -i " + spaces, first)
        path.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$((${{1##*.}} - 1)); shift
exec ip netns exec {self.name}$host unshare {spaces} sh -c "{first}hostname host$host; $*"
""")
        path.chmod(0o755)
        hosts = ",".join(f"10.77.0.{r + 1}:{1 if in_turn and not open_mpi else per_host}" for r in range(self.count))
        if open_mpi:
            network = "10.77.0.0/24"  # the first and the third are of Open MPI 4, the second and the fourth of 5 and 6
            settings = {"plm_rsh_agent": path, "plm_ssh_agent": path, "oob_tcp_if_include": network, "prte_if_include": network, "btl_tcp_if_include": network, "pml": "ob1", "btl": "tcp,vader,self"}
            return ["mpiexec.openmpi", "--leave-session-attached", *(str(word) for name, value in settings.items() for word in ("--mca", name, value)), "--map-by", "node" if in_turn else "slot", "--bind-to", "none",
                    "-host", hosts, "-n", str(self.count * per_host)]
        return ["mpiexec.mpich", "-localhost", "10.77.0.254", "-launcher", "ssh", "-launcher-exec", str(path), "-hosts", hosts, "-n", str(self.count * per_host)]

    @property
    def inside(self):
        """Words before a command that uses launch()."""
        return ["ip", "netns", "exec", self.name]

    def calibrate(self, build, launch, support):
        """The wire's figures, measured between two namespaces. `launch`: the words of enter() or launch()."""
        start = [*self.inside, *launch] if launch[0] == "mpiexec.mpich" else ["mpiexec.mpich", "-n", str(self.count), *map(str, launch)]
        environment = self.environment_of_nodes if launch[0] == "mpiexec.mpich" else self.environment
        wire = subprocess.Popen([*start, str(build / "bin/latecomer-calibrate"), "yield"], stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_PRELOAD=str(support), **environment))
        line = wire.stdout.readline()
        try:
            wire.wait(5)
        except subprocess.TimeoutExpired:  # MPI_Finalize over TCP, see run_until_profile()
            end_tree(wire)
        return json.loads(line)
