/* SPDX-License-Identifier: Apache-2.0 */
#include "store_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/base.h"

static _Atomic int fault;
static _Atomic int64_t left; /* operations that still pass */
static sqlite3_vfs shim;
static sqlite3_vfs *below;

struct shim_file {
	sqlite3_file base;
	sqlite3_file *real; /* behind this struct */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct shim_file *)(void *)file)->real;
}

void store_vfs_fail(enum vfs_fault kind, uint64_t after)
{
	left = (int64_t)after;
	fault = (int)kind;
}

static bool fails(void)
{
	return left-- <= 0;
}

static int shim_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int shim_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
	return real_of(file)->pMethods->xRead(real_of(file), to, size, at);
}

static int shim_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
	if (fault == VFS_FULL && fails())
		return SQLITE_FULL;
	if (fault == VFS_WRITE && fails())
		return SQLITE_IOERR_WRITE;
	if (fault == VFS_KILL && fails())
		(void)raise(SIGKILL);
	return real_of(file)->pMethods->xWrite(real_of(file), from, size, at);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
	if (fault == VFS_SYNC && fails())
		return SQLITE_IOERR_FSYNC;
	if (fault == VFS_KILL && fails())
		(void)raise(SIGKILL);
	return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int shim_lock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int shim_unlock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int shim_check_lock(sqlite3_file *file, int *out)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int shim_control(sqlite3_file *file, int op, void *arg)
{
	return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int shim_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int shim_device(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
	return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
	real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int shim_shm_unmap(sqlite3_file *file, int remove)
{
	return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = shim_close,
	.xRead = shim_read,
	.xWrite = shim_write,
	.xTruncate = shim_truncate,
	.xSync = shim_sync,
	.xFileSize = shim_size,
	.xLock = shim_lock,
	.xUnlock = shim_unlock,
	.xCheckReservedLock = shim_check_lock,
	.xFileControl = shim_control,
	.xSectorSize = shim_sector,
	.xDeviceCharacteristics = shim_device,
	.xShmMap = shim_shm_map,
	.xShmLock = shim_shm_lock,
	.xShmBarrier = shim_shm_barrier,
	.xShmUnmap = shim_shm_unmap,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct shim_file *opened = (struct shim_file *)(void *)file;
	int rc;

	(void)vfs;
	opened->real = (sqlite3_file *)(void *)(opened + 1);
	rc = below->xOpen(below, name, opened->real, flags, out);
	opened->base.pMethods = opened->real->pMethods ? &methods : NULL;
	return rc;
}

void store_vfs_install(void)
{
	below = sqlite3_vfs_find(NULL);
	must(below);
	shim = *below;
	shim.szOsFile = below->szOsFile + (int)sizeof(struct shim_file);
	shim.zName = "hearth-faults";
	shim.xOpen = shim_open;
	shim.pNext = NULL;
	must(sqlite3_vfs_register(&shim, 1) == SQLITE_OK);
}
