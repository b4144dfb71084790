"""Numbers of the system calls that programs may make, as `name:x86_64:aarch64` (from the kernel's headers)."""

TABLE = """
read:0:63 write:1:64 open:2:- close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62 mmap:9:222 mprotect:10:226
munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 pread64:17:67 pwrite64:18:68
readv:19:65 writev:20:66 access:21:- pipe:22:- select:23:- sched_yield:24:124 mremap:25:216 msync:26:227
mincore:27:232 madvise:28:233 dup:32:23 dup2:33:- pause:34:- nanosleep:35:101 getitimer:36:102 alarm:37:-
setitimer:38:103 getpid:39:172 sendfile:40:71 accept:43:202 recvfrom:45:207 recvmsg:47:212 shutdown:48:210
getsockname:51:204 getpeername:52:205 setsockopt:54:208 getsockopt:55:209 fork:57:- vfork:58:- execve:59:221
exit:60:93 wait4:61:260 uname:63:160 flock:73:32 fsync:74:82 fdatasync:75:83 truncate:76:45 ftruncate:77:46
getdents:78:- getcwd:79:17 chdir:80:49 fchdir:81:50 rename:82:- mkdir:83:- rmdir:84:- creat:85:- link:86:- unlink:87:-
symlink:88:- readlink:89:- umask:95:166 gettimeofday:96:169 getrlimit:97:163 getrusage:98:165 sysinfo:99:179
times:100:153 getuid:102:174 getgid:104:176 geteuid:107:175 getegid:108:177 setpgid:109:154 getppid:110:173
getpgrp:111:- setsid:112:157 getgroups:115:158 getresuid:118:148 getresgid:120:150 getpgid:121:155 getsid:124:156
capget:125:90 rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 sigaltstack:131:132 statfs:137:43
fstatfs:138:44 getpriority:140:141 sched_getparam:143:121 sched_getscheduler:145:120 sched_get_priority_max:146:125
sched_get_priority_min:147:126 sched_rr_get_interval:148:127 mlock:149:228 munlock:150:229 mlockall:151:230
munlockall:152:231 prctl:157:167 arch_prctl:158:- setrlimit:160:164 gettid:186:178 readahead:187:213 getxattr:191:8
lgetxattr:192:9 fgetxattr:193:10 listxattr:194:11 llistxattr:195:12 flistxattr:196:13 time:201:- futex:202:98
sched_getaffinity:204:123 set_tid_address:218:96 restart_syscall:219:128 getdents64:217:61 fadvise64:221:223
timer_create:222:107 timer_settime:223:110 timer_gettime:224:108 timer_getoverrun:225:109 timer_delete:226:111
clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115 exit_group:231:94 epoll_create:213:-
epoll_wait:232:- epoll_ctl:233:21 get_mempolicy:239:236 waitid:247:95 openat:257:56 mkdirat:258:34 unlinkat:263:35
renameat:264:38 linkat:265:37 symlinkat:266:36 readlinkat:267:78 faccessat:269:48 pselect6:270:72 ppoll:271:73
set_robust_list:273:99 get_robust_list:274:100 sync_file_range:277:84 epoll_pwait:281:22 signalfd:282:-
timerfd_create:283:85 eventfd:284:- fallocate:285:47 timerfd_settime:286:86 timerfd_gettime:287:87 accept4:288:242
signalfd4:289:74 eventfd2:290:19 epoll_create1:291:20 dup3:292:24 pipe2:293:59 preadv:295:69 pwritev:296:70
recvmmsg:299:243 getcpu:309:168 newfstatat:262:79 renameat2:316:276 getrandom:318:278 execveat:322:281
membarrier:324:283 mlock2:325:284 copy_file_range:326:285 preadv2:327:286 pwritev2:328:287 pkey_mprotect:329:288
pkey_alloc:330:289 pkey_free:331:290 statx:332:291 rseq:334:293 close_range:436:436 faccessat2:439:439
epoll_pwait2:441:441 futex_waitv:449:449 mknod:133:- mknodat:259:33 chmod:90:- fchmod:91:52 fchmodat:268:53 chown:92:-
fchown:93:55 lchown:94:- fchownat:260:54 utime:132:- utimes:235:- futimesat:261:- utimensat:280:88 inotify_init:253:-
inotify_init1:294:26 inotify_add_watch:254:27 inotify_rm_watch:255:28 socket:41:198 socketpair:53:199 connect:42:203
bind:49:200 listen:50:201 sendto:44:206 sendmsg:46:211 sendmmsg:307:269 kill:62:129 tkill:200:130 tgkill:234:131
clone:56:220 clone3:435:435 ioctl:16:29 fcntl:72:25 prlimit64:302:261 setpriority:141:140 sched_setparam:142:118
sched_setscheduler:144:119 sched_setaffinity:203:122 sched_getattr:315:275 sched_setattr:314:274
"""


def numbers(machine: str) -> dict[str, int]:
    """Returns name -> number for `x86_64` or `aarch64`; KeyError for another machine."""
    column = {"x86_64": 1, "aarch64": 2}[machine]
    rows = (row.split(":") for row in TABLE.split())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
