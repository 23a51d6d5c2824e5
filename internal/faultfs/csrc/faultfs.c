/*
 * faultfs BASE MOUNT [cached] [folds]: shows the directory BASE at MOUNT, and fails a call
 * where it is told to. It stays in the foreground, and ends with the process that has
 * started it.
 *
 * It is told through the file MOUNT/.faultfs, which only lookups by name find. Written to
 * it is one line:
 *
 *	off                                               nothing fails, nothing is counted
 *	count PROCESS...                                  nothing fails, calls are counted
 *	OP ACTION ARGUMENT SKIP TIMES PROCESS [PART]      what fails
 *
 * A rule is for the calls OP of one process, 0 for all, on paths that contain PART; the
 * first SKIP of them are left alone, the next TIMES are acted on:
 *
 *	err    fails with the errno ARGUMENT, and nothing is done
 *	after  is carried out, and then fails with the errno ARGUMENT
 *	short  moves half of the bytes
 *	delay  is carried out after ARGUMENT milliseconds
 *
 * Read from it are the number of calls that were acted on, "fired N", and what was counted,
 * "PROCESS OP N" a line.
 *
 * Files are opened without the kernel's cache, so each call of a program arrives here as
 * it was made, and a short read is a short read; "cached" opens them with it. Names and
 * attributes aren't remembered either, so MOUNT shows at once what changes in BASE.
 *
 * With "folds" MOUNT doesn't tell the case of ASCII letters apart: names below it are those
 * of BASE in lower case.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define CONTROL "/.faultfs"
enum { MAX_PROCESSES = 64, MAX_OPS = 32, NAME = 16, TEXT = 1 << 16 };
enum action { NOTHING, ERR, AFTER, SHORT, DELAY };

static char base[PATH_MAX];

/* What is told and what was seen, under one lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char op[NAME], part[256];
	enum action action;
	int argument;
	long skip, times, process, seen, fired;
} rule;
static int processes;
static long process[MAX_PROCESSES];
static int ops;
static struct {
	char name[NAME];
	long count[MAX_PROCESSES];
} op_counts[MAX_OPS];

static int cached, folds;

/* Real paths. */
struct real { char text[2 * PATH_MAX]; };
static struct real real(const char *path)
{
	struct real r;
	char *c = r.text + snprintf(r.text, sizeof r.text, "%s", base);
	snprintf(c, sizeof r.text - (c - r.text), "%s", path);
	for (; folds && *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c += 'a' - 'A';
	return r;
}
#define REAL(path) (real(path).text)

static int result(long r) { return r < 0 ? -errno : (int)r; }

/* FUSE says which thread called. */
static int thread_of(long pid, long tid)
{
	char name[64];
	if (pid == tid)
		return 1;
	snprintf(name, sizeof name, "/proc/%ld/task/%ld", pid, tid);
	return access(name, F_OK) == 0;
}

static void note(const char *op, long tid)
{
	int p, k;
	for (p = 0; p < processes && !thread_of(process[p], tid); p++)
		;
	if (p == processes)
		return;
	for (k = 0; k < ops && strcmp(op_counts[k].name, op); k++)
		;
	if (k == MAX_OPS)
		return;
	if (k == ops) {
		memset(&op_counts[k], 0, sizeof op_counts[k]);
		snprintf(op_counts[k].name, NAME, "%s", op);
		ops++;
	}
	op_counts[k].count[p]++;
}

/* begin is asked before each call; *err is the errno where it or its answer is to fail. */
static enum action begin(const char *op, const char *path, int *err)
{
	struct fuse_context *context = fuse_get_context();
	long tid = context ? context->pid : 0;
	enum action what = NOTHING;
	int delay = 0;

	pthread_mutex_lock(&lock);
	if (processes)
		note(op, tid);
	if (rule.action && !strcmp(rule.op, op) && strstr(path ? path : "", rule.part) &&
	    (!rule.process || thread_of(rule.process, tid)) &&
	    rule.seen++ >= rule.skip && rule.fired < rule.times) {
		rule.fired++;
		what = rule.action;
		*err = rule.argument;
		delay = what == DELAY ? rule.argument : 0;
	}
	pthread_mutex_unlock(&lock);
	if (delay)
		usleep(delay * 1000);
	return what;
}

#define BEGIN(op, path)                              \
	int err = 0;                                 \
	enum action what = begin(op, path, &err);    \
	if (what == ERR)                             \
		return -err

/* end is the answer of a call that was carried out. */
static int end(enum action what, int err, int r) { return r >= 0 && what == AFTER ? -err : r; }
#define END(r) return end(what, err, r)

/* ---- the control file ---- */

static int is_control(const char *path) { return path && !strcmp(path, CONTROL); }

static int tell(const char *text)
{
	char op[NAME], action[NAME], part[256] = "";
	int argument, n = 0;
	long skip, times, pid;
	static const char *names[] = { "", "err", "after", "short", "delay" };

	if (!strncmp(text, "off", 3) || !strncmp(text, "count", 5)) {
		memset(&rule, 0, sizeof rule);
		processes = ops = 0;
		if (*text == 'o')
			return 0;
		for (text += 5; processes < MAX_PROCESSES && sscanf(text, "%ld%n", &pid, &n) == 1; text += n)
			process[processes++] = pid;
		return processes ? 0 : -EINVAL;
	}
	if (sscanf(text, "%15s %15s %d %ld %ld %ld %255s", op, action, &argument, &skip, &times, &pid, part) < 6)
		return -EINVAL;
	for (n = ERR; n <= DELAY && strcmp(action, names[n]); n++)
		;
	if (n > DELAY)
		return -EINVAL;
	memset(&rule, 0, sizeof rule);
	processes = ops = 0;
	snprintf(rule.op, sizeof rule.op, "%s", op);
	snprintf(rule.part, sizeof rule.part, "%s", part);
	rule.action = n;
	rule.argument = argument;
	rule.skip = skip;
	rule.times = times;
	rule.process = pid;
	return 0;
}

static int control_write(const char *text, size_t n)
{
	char line[1024];
	int r;
	if (n >= sizeof line)
		return -EINVAL;
	memcpy(line, text, n);
	line[n] = 0;
	pthread_mutex_lock(&lock);
	r = tell(line);
	pthread_mutex_unlock(&lock);
	return r < 0 ? r : (int)n;
}

static int control_read(char *to, size_t n, off_t at)
{
	char *text = malloc(TEXT);
	int k, p, have;
	if (!text)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	have = snprintf(text, TEXT, "fired %ld\n", rule.fired);
	for (k = 0; k < ops; k++)
		for (p = 0; p < processes; p++)
			if (op_counts[k].count[p] && have < TEXT - 64)
				have += snprintf(text + have, TEXT - have, "%ld %s %ld\n", process[p], op_counts[k].name, op_counts[k].count[p]);
	pthread_mutex_unlock(&lock);
	if (at >= have)
		n = 0;
	else if (n > (size_t)(have - at))
		n = have - at;
	memcpy(to, text + at, n);
	free(text);
	return n;
}

/* ---- names ---- */

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	if (is_control(path)) {
		memset(st, 0, sizeof *st);
		st->st_mode = S_IFREG | 0666;
		st->st_nlink = 1;
		return 0;
	}
	BEGIN("getattr", path);
	END(result(fi ? fstat(fi->fh, st) : lstat(REAL(path), st)));
}

static int fs_readlink(const char *path, char *to, size_t n)
{
	ssize_t r;
	BEGIN("readlink", path);
	r = readlink(REAL(path), to, n - 1);
	if (r >= 0)
		to[r] = 0;
	END(r < 0 ? -errno : 0);
}

static int fs_mkdir(const char *path, mode_t mode) { BEGIN("mkdir", path); END(result(mkdir(REAL(path), mode))); }
static int fs_unlink(const char *path) { BEGIN("unlink", path); END(result(unlink(REAL(path)))); }
static int fs_rmdir(const char *path) { BEGIN("rmdir", path); END(result(rmdir(REAL(path)))); }
static int fs_symlink(const char *to, const char *path) { BEGIN("symlink", path); END(result(symlink(to, REAL(path)))); }

static int fs_link(const char *from, const char *to)
{
	BEGIN("link", from);
	END(result(link(REAL(from), REAL(to))));
}

static int fs_rename(const char *from, const char *to, unsigned flags)
{
	BEGIN(flags ? "rename2" : "rename", from);
	END(result(renameat2(AT_FDCWD, REAL(from), AT_FDCWD, REAL(to), flags)));
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	BEGIN("chmod", path);
	END(result(chmod(REAL(path), mode)));
}

static int fs_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	(void)fi;
	BEGIN("chown", path);
	END(result(lchown(REAL(path), uid, gid)));
}

static int fs_utimens(const char *path, const struct timespec t[2], struct fuse_file_info *fi)
{
	(void)fi;
	BEGIN("utimens", path);
	END(result(utimensat(AT_FDCWD, REAL(path), t, AT_SYMLINK_NOFOLLOW)));
}

static int fs_statfs(const char *path, struct statvfs *st) { BEGIN("statfs", path); END(result(statvfs(REAL(path), st))); }

/* ---- directories ---- */

static int fs_opendir(const char *path, struct fuse_file_info *fi)
{
	DIR *d;
	BEGIN("opendir", path);
	d = opendir(REAL(path));
	if (!d)
		return -errno;
	if (what == AFTER) {
		closedir(d);
		return -err;
	}
	fi->fh = (uintptr_t)d;
	return 0;
}

static int fs_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t at, struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	DIR *d = (DIR *)(uintptr_t)fi->fh;
	struct dirent *e;
	(void)at, (void)flags;
	BEGIN("readdir", path);
	rewinddir(d);
	while ((e = readdir(d)))
		if (fill(to, e->d_name, NULL, 0, 0))
			break;
	END(0);
}

static int fs_releasedir(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return result(closedir((DIR *)(uintptr_t)fi->fh));
}

static int fs_fsyncdir(const char *path, int data, struct fuse_file_info *fi)
{
	(void)data, (void)fi;
	BEGIN("fsyncdir", path);
	END(0); /* what a crash leaves is tested elsewhere */
}

/* ---- files ---- */

static int opened(enum action what, int err, int fd, struct fuse_file_info *fi)
{
	if (fd < 0)
		return -errno;
	if (what == AFTER) {
		close(fd);
		return -err;
	}
	fi->fh = fd;
	fi->direct_io = !cached;
	return 0;
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	if (is_control(path))
		return -EEXIST;
	BEGIN("create", path);
	return opened(what, err, open(REAL(path), fi->flags & ~O_APPEND, mode), fi);
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
	if (is_control(path)) {
		fi->direct_io = 1;
		return 0;
	}
	BEGIN("open", path);
	return opened(what, err, open(REAL(path), fi->flags & ~(O_APPEND | O_NOFOLLOW)), fi);
}

static int fs_read(const char *path, char *to, size_t n, off_t at, struct fuse_file_info *fi)
{
	if (is_control(path))
		return control_read(to, n, at);
	BEGIN("read", path);
	END(result(pread(fi->fh, to, what == SHORT ? (n + 1) / 2 : n, at)));
}

static int fs_write(const char *path, const char *from, size_t n, off_t at, struct fuse_file_info *fi)
{
	if (is_control(path))
		return control_write(from, n);
	BEGIN("write", path);
	END(result(pwrite(fi->fh, from, what == SHORT ? (n + 1) / 2 : n, at)));
}

static int fs_truncate(const char *path, off_t n, struct fuse_file_info *fi)
{
	if (is_control(path))
		return 0;
	BEGIN("truncate", path);
	END(result(fi ? ftruncate(fi->fh, n) : truncate(REAL(path), n)));
}

static int fs_fallocate(const char *path, int mode, off_t at, off_t n, struct fuse_file_info *fi)
{
	BEGIN("fallocate", path);
	END(result(fallocate(fi->fh, mode, at, n)));
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *fi)
{
	(void)data, (void)fi;
	BEGIN("fsync", path);
	END(0);
}

/* close(2) of a descriptor; the last one is released after it. */
static int fs_flush(const char *path, struct fuse_file_info *fi)
{
	if (is_control(path))
		return 0;
	BEGIN("flush", path);
	END(result(close(dup(fi->fh))));
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
	return is_control(path) ? 0 : result(close(fi->fh));
}

static int fs_flock(const char *path, struct fuse_file_info *fi, int op)
{
	BEGIN("flock", path);
	END(result(flock(fi->fh, op)));
}

/* fcntl's locks. Each open file is an owner, as it has a descriptor of its own here. */
static int fs_lock(const char *path, struct fuse_file_info *fi, int command, struct flock *l)
{
	BEGIN("lock", path);
	l->l_pid = 0;
	END(result(fcntl(fi->fh, command == F_GETLK ? F_OFD_GETLK : command == F_SETLK ? F_OFD_SETLK : F_OFD_SETLKW, l)));
}

static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	config->use_ino = 1;
	config->hard_remove = 1;
	config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
	return NULL;
}

static const struct fuse_operations operations = {
	.init = fs_init,
	.getattr = fs_getattr, .readlink = fs_readlink, .mkdir = fs_mkdir, .unlink = fs_unlink, .rmdir = fs_rmdir,
	.symlink = fs_symlink, .link = fs_link, .rename = fs_rename, .chmod = fs_chmod, .chown = fs_chown,
	.utimens = fs_utimens, .statfs = fs_statfs,
	.opendir = fs_opendir, .readdir = fs_readdir, .releasedir = fs_releasedir, .fsyncdir = fs_fsyncdir,
	.create = fs_create, .open = fs_open, .read = fs_read, .write = fs_write, .truncate = fs_truncate,
	.fallocate = fs_fallocate, .fsync = fs_fsync, .flush = fs_flush, .release = fs_release,
	.flock = fs_flock, .lock = fs_lock,
};

/* Whoever has started it may be killed. */
static void *ends_with(void *parent)
{
	while (getppid() == *(pid_t *)parent)
		usleep(200 * 1000);
	kill(getpid(), SIGTERM);
	return NULL;
}

int main(int argc, char **argv)
{
	static char foreground[] = "-f";
	static pid_t parent;
	char *args[] = { argv[0], argv[2], foreground, NULL };
	pthread_t thread;
	int usage = argc < 3 || !realpath(argv[1], base);

	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "cached"))
			cached = 1;
		else if (!strcmp(argv[i], "folds"))
			folds = 1;
		else
			usage = 1;
	}
	if (usage) {
		fprintf(stderr, "faultfs BASE MOUNT [cached] [folds]\n");
		return 2;
	}
	umask(0);
	parent = getppid();
	if (pthread_create(&thread, NULL, ends_with, &parent)) {
		perror("faultfs");
		return 2;
	}
	return fuse_main(3, args, &operations, NULL);
}
