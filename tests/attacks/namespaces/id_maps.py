# SPDX-License-Identifier: Apache-2.0
#| id = "N05"
#| title = "The mapping of user ids"
#| does = "One id is mapped, it is not root inside nor outside, setgroups is denied, no other id can be had."
#| [expect]
#| status = "ok"
#| verdicts = {lines = "1", root_inside = "no", root_outside = "no", count = "1", setgroups = "deny", setuid = "DENIED (EPERM|EINVAL)", setgid = "DENIED (EPERM|EINVAL)", groups = "DENIED EPERM", write = "DENIED (EPERM|EACCES|EROFS)", allow = "DENIED (EPERM|EACCES|EROFS)"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {lines = "1", root_inside = "yes", root_outside = "yes", count = "4294967295", setgroups = "allow", setuid = "DID", setgid = "DID", groups = "DID", write = "DENIED EPERM", allow = "DID"}
with open("/proc/self/uid_map") as file:
    lines = [list(map(int, line.split())) for line in file]
verdict("lines", str(len(lines)))
inside, outside, count = lines[0]
verdict("root_inside", "yes" if inside == 0 or os.getuid() == 0 else "no")
verdict("root_outside", "yes" if outside == 0 else "no")
verdict("count", str(count))
with open("/proc/self/setgroups") as file:
    verdict("setgroups", file.read().strip())
in_child("setuid", os.setuid, 0 if os.getuid() else 1)
in_child("setgid", os.setgid, 0 if os.getgid() else 1)
in_child("groups", os.setgroups, [0])


def write(name, text):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


attempt("write", write, "uid_map", f"0 {outside} 1")
attempt("allow", write, "setgroups", "allow")
