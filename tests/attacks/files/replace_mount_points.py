# SPDX-License-Identifier: Apache-2.0
#| id = "F16"
#| title = "Replacing mount points and the places above them by symlinks"
#| does = "Each is refused (EBUSY, EROFS or EACCES), so that the next set-up cannot be led elsewhere."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {rename_tmp = "DENIED (EBUSY|EROFS|EACCES|EXDEV)", rename_shm = "DENIED (EBUSY|EROFS|EACCES|EXDEV)", rename_proc = "DENIED (EBUSY|EROFS|EACCES|EXDEV)", rename_usr = "DENIED (EBUSY|EROFS|EACCES|EXDEV)", link = "DENIED (EROFS|EACCES|EEXIST)", rmdir = "DENIED (EBUSY|EROFS|EACCES)"}
#| [control]
#| kind = "host"
#| has = ["@rename_usr: DID", "@rename_tmp: DID", "@link: DID"]
attempt("link", os.symlink, "/tmp", "/etc/@MARK@")
attempt("rmdir", os.rmdir, "/dev/shm")
attempt("rename_shm", os.rename, "/dev/shm", "/dev/shm2")
attempt("rename_proc", os.rename, "/proc", "/proc2")
# In the control these two are directories of the overlay, and no mount points.
attempt("rename_tmp", os.rename, "/tmp" if os.path.exists("/workspace") else "/srv", "/tmp2")
attempt("rename_usr", os.rename, "/usr" if os.path.exists("/workspace") else "/usr/games", "/usr2")
