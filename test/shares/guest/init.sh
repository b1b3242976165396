#!/bin/sh
# The first process of a guest: its root is the machine's own, read-only; everything that it writes lies in memory or on the share.
# From the kernel's command line: NAME, IP, NODE (the binary), AGENT (a compiled module), MODULES (kernel modules to load).
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/run/tmp HOME=/run/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /mnt
mkdir -p /run/tmp /run/umlroot/lib/modules /mnt/share
hostname "$NAME"
ln -s "/usr/lib/uml/modules/$(uname -r)" "/run/umlroot/lib/modules/$(uname -r)"
for module in iptable_filter xt_tcpudp xt_statistic sch_netem $(echo "$MODULES" | tr , ' '); do
  modprobe -q -d /run/umlroot "$module" || echo "no module $module"
done
ip link set lo up
ip addr add "$IP/24" dev vec0
ethtool -K vec0 tso off gso off gro off tx off sg off >/dev/null 2>&1
ip link set vec0 up
exec "$NODE" "$AGENT"
