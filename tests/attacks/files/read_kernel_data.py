# SPDX-License-Identifier: Apache-2.0
#| id = "F04"
#| title = "Reading what the kernel tells of the whole machine"
#| does = "Each file is absent or refused; none can be read."
#| [expect]
#| status = "ok"
#| verdicts = {kcore = "DENIED .*", keys = "DENIED .*", kallsyms = "DENIED .*", kmsg = "DENIED .*", modules_or_iomem = "DENIED .*", interrupts = "DENIED .*", firmware = "DENIED .*", config = "DENIED .*", slabinfo = "DENIED .*", cmdline = "DENIED .*", vmallocinfo = "DENIED .*", block = "DENIED .*", net = "DENIED .*"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {kcore = "DID|DENIED ENOENT", keys = "DID", kallsyms = "DID", kmsg = "DID|DENIED EAGAIN", modules_or_iomem = "DID", interrupts = "DID", firmware = "DID", config = "DID|DENIED ENOENT", slabinfo = "DID", cmdline = "DID", vmallocinfo = "DID", block = "DID", net = "DID"}
def read(path):
    if os.path.isdir(path):
        return os.listdir(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    return os.read(fd, 8192)


for name, path in {
        "kcore": "/proc/kcore", "keys": "/proc/keys", "kallsyms": "/proc/kallsyms",
        "kmsg": "/dev/kmsg", "modules_or_iomem": "/proc/iomem", "interrupts": "/proc/interrupts",
        "firmware": "/sys/firmware", "config": "/proc/config.gz", "slabinfo": "/proc/slabinfo",
        "cmdline": "/proc/cmdline", "vmallocinfo": "/proc/vmallocinfo",
        "block": "/sys/block", "net": "/sys/class/net"}.items():
    try:
        os.stat(path)
    except OSError as error:
        verdict(name, "DENIED " + _errno.errorcode[error.errno])
        continue
    attempt(name, read, path)
