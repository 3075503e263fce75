# SPDX-License-Identifier: BSD-3-Clause
"""Several hosts on one machine: network namespaces on a bridge in another namespace. The machine's own network does
not change. Needs root, or the right to create namespaces."""
import json
import os
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


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True).returncode == 0


class Hosts:
    """`name`0 ... `name`(count-1), from 10.77.0.1 on; mbit: rate of each link in both directions; None: unlimited."""

    # Makes MPICH use the links.
    environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}

    def __init__(self, name, count, mbit=None):
        self.name, self.count = name, count
        self.remove()
        self.able = ip("netns", "add", name)
        if not self.able:
            return
        ip("-n", name, "link", "add", "br0", "type", "bridge")
        ip("-n", name, "link", "set", "br0", "up")
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
            if mbit:
                for where, device in ((space, "eth0"), (name, f"port{r}")):
                    self.able = self.able and subprocess.run(["tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit", "burst", "16kb",
                                                              "limit", "4mb"], capture_output=True).returncode == 0

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

    def calibrate(self, build, launch, support):
        """The wire's figures, measured between two namespaces."""
        words = ["mpiexec.mpich", "-n", str(self.count), *map(str, launch), str(build / "bin/latecomer-calibrate"), "yield"]
        wire = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_PRELOAD=str(support), **self.environment))
        line = wire.stdout.readline()
        try:
            wire.wait(5)
        except subprocess.TimeoutExpired:  # MPI_Finalize over TCP, see run_until_profile()
            end_tree(wire)
        return json.loads(line)
