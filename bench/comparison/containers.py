# SPDX-License-Identifier: Apache-2.0
"""The OCI bundle that runc and runsc run: the host's /usr read-only, /workspace, no network."""
import json
import os

# Of /etc, what Python and its packages need: which BLAS it is, matplotlib's settings.
SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/matplotlibrc")
NAMESPACES = ("pid", "network", "ipc", "uts", "mount", "cgroup")


def bundle(directory, workspace, arguments, environment, memory, processes):
    """Makes `directory` a bundle whose process has `workspace` as its own."""
    root = directory / "rootfs"
    for name in ("usr", "proc", "dev", "tmp", "workspace", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("lib", "lib64", "bin"):
        if not (root / name).is_symlink():
            os.symlink(f"usr/{name}", root / name)
    none = {kind: [] for kind in ("bounding", "effective", "permitted")}
    configuration = {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": arguments,
                    "env": [f"{name}={value}" for name, value in environment.items()],
                    "cwd": "/workspace", "capabilities": none, "noNewPrivileges": True},
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "bench",
        "mounts": [
            {"destination": "/usr", "type": "bind", "source": "/usr",
             "options": ["rbind", "ro", "nosuid", "nodev"]},
            *({"destination": path, "type": "bind", "source": path,
               "options": ["rbind", "ro", "nosuid", "nodev"]} for path in SETTINGS
              if os.path.exists(path)),
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "mode=755", "size=65536k"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "nodev", "size=64m"]},
            {"destination": "/workspace", "type": "bind", "source": str(workspace),
             "options": ["rbind", "rw", "nosuid", "nodev"]},
        ],
        "linux": {
            "resources": {"devices": [{"allow": False, "access": "rwm"}],
                          "memory": {"limit": memory}, "pids": {"limit": processes}},
            "namespaces": [{"type": name} for name in NAMESPACES],
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                              "/proc/sysrq-trigger"],
        },
    }
    (directory / "config.json").write_text(json.dumps(configuration))
