# SPDX-License-Identifier: Apache-2.0
#| id = "S02"
#| title = "System calls by int 0x80, whose numbers mean something else"
#| does = "The architecture is checked: refused or killed by SIGSYS, never carried out."
#| needs = ["ia32"]
#| [expect]
#| status = "ok"
#| verdicts = {getpid = "KILLED 31|refused", mkdir = "KILLED 31|refused", made = "no"}
#| [control]
#| kind = "plain"
#| verdicts = {getpid = "worked", mkdir = "worked", made = "yes"}
import mmap

MAP_32BIT = 0x40


def enter(number, argument=0):
    """push rbx; mov eax, number; mov ebx, argument; xor ecx, ecx; int 0x80; pop rbx; ret"""
    code = (b"\x53\xb8" + number.to_bytes(4, "little") + b"\xbb" + argument.to_bytes(4, "little")
            + b"\x31\xc9\xcd\x80\x5b\xc3")
    area = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_32BIT,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area[:len(code)] = code
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def try_in_child(name, function):
    child = os.fork()
    if child == 0:
        os._exit(0 if function() else 1)
    status = os.waitpid(child, 0)[1]
    verdict(name, f"KILLED {os.WTERMSIG(status)}" if os.WIFSIGNALED(status)
            else "worked" if status == 0 else "refused")


def low_string(text):
    area = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_32BIT)
    area[:len(text)] = text
    kept.append(area)
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


kept = []
try_in_child("getpid", lambda: enter(20) == os.getpid())
path = low_string(b"by-int80\0")
try_in_child("mkdir", lambda: enter(39, path) == 0)
verdict("made", "yes" if os.path.exists("by-int80") else "no")
