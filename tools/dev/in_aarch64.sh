#!/bin/sh
# in_aarch64.sh COMMAND...: runs a command in the root file system of Debian's arm64
# packages (aarch64.py), emulated by qemu. AArch64's torch is at /site, dist/ at /wheels;
# IN_AARCH64_CPU is one of aarch64.py's processors, neoverse-n1 (without SVE) by default.
set -e
if [ -z "$IN_AARCH64_ROOT" ]; then
    folder="$(cd "$(dirname "$0")/../../.dev/aarch64" && pwd)"
    export IN_AARCH64_ROOT="$folder"
    # In a separate user namespace, the kernel starts the emulator for this command and its
    # child processes, and for no other process.
    exec unshare --user --map-root-user --mount "$0" "$@"
fi
folder="$IN_AARCH64_ROOT"
root="$folder/root"
cpu="${IN_AARCH64_CPU:-neoverse-n1}"
emulator="$(command -v qemu-aarch64-static)"
binfmt=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc "$binfmt"
head='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":aarch64:M::$head:$mask:$emulator:F" > "$binfmt/register"
processors=sys/devices/system/cpu
mkdir -p "$root/dev" "$root/proc" "$root/site" "$root/wheels" "$root/root" "$root/tmp" \
    "$root/$processors"
mount --rbind /proc "$root/proc"
mount --bind "$folder/processors/$cpu/cpuinfo" "$root/proc/cpuinfo"
mount --bind "$folder/processors/$cpu/cpu" "$root/$processors"
mount --rbind /dev "$root/dev"
mount --bind "$folder/site" "$root/site"
mount --bind "$folder/../../dist" "$root/wheels"
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 \
    QEMU_CPU="$cpu" "$@"
