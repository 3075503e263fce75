# SPDX-License-Identifier: BSD-3-Clause
"""Several hosts on one machine: network namespaces on a bridge in a namespace of its own; nothing of it touches the
machine's network. Needs root, or the right to make namespaces."""
import subprocess


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True).returncode == 0


class Hosts:
    """`name`0 ... `name`(count-1), 10.77.0.1 on; mbit: rate of each link, both ways; None: unlimited."""

    # What makes MPICH talk between them.
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
            # A connection that was idle while the program computed is as fast as before: what a cluster's network does.
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
        """Writes a script that runs its arguments in the namespace of its rank, under a host name of its own (MPICH
        takes ranks of one name for one node), what is preloaded for the program alone."""
        path.write_text(f"""#!/bin/sh
preload=$LD_PRELOAD; unset LD_PRELOAD
exec ip netns exec {self.name}$PMI_RANK unshare -u env PRELOAD="$preload" sh -c 'hostname host$PMI_RANK; preload=$PRELOAD; unset PRELOAD; {inside}' sh "$@"
""")
        path.chmod(0o755)
        return path
