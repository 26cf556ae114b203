/* SPDX-License-Identifier: Apache-2.0 */
/* A program with PHP inside, built for threads (ZTS): several threads run a script each, again and again, every one as
 * a request of its own. Arguments: libphp.so, the script, threads, seconds. Symbols by name: there are no headers of
 * that build.
 *
 * Sources: php-src, sapi/embed/php_embed.h, TSRM/TSRM.h, main/php_main.h, Zend/zend_stream.h, main/SAPI.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS_MAX 16
#define FILE_HANDLE_MAX 1024 /* a zend_file_handle has some 80 bytes */

static int (*embed_init)(int, char **);
static void (*embed_shutdown)(void), (*free_thread)(void), (*request_shutdown)(void *);
static void (*open_script)(void *, const char *), (*destroy_handle)(void *);
static void *(*resource)(void *), *(*ls_cache)(void);
static int (*request_startup)(void), (*execute)(void *);
static size_t *request_offset;
static const char *script;
static time_t end;

static void *symbol(void *library, const char *name)
{
	void *at = dlsym(library, name);

	if (!at) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return at;
}

/* path_translated and request_uri in sapi_globals of this thread, as php-fpm sets them, and clears them. */
static void say_request(char *path, char *uri)
{
	char **at = (char **)((char *)ls_cache() + *request_offset + 40);

	at[0] = path;
	at[1] = uri;
}

static void one_request(long number)
{
	char handle[FILE_HANDLE_MAX] = { 0 }, path[64], uri[64];

	snprintf(path, sizeof(path), "/srv/thread%ld.php", number);
	snprintf(uri, sizeof(uri), "/thread/%ld?s3cr3t=1", number);
	say_request(path, uri);
	if (request_startup() == 0) {
		open_script(handle, script);
		execute(handle);
		destroy_handle(handle);
	}
	say_request(NULL, NULL);
	request_shutdown(NULL);
}

static void *work(void *number)
{
	char name[16];

	snprintf(name, sizeof(name), "php-%ld", (long)number);
	pthread_setname_np(pthread_self(), name);
	resource(NULL);
	while (time(NULL) < end)
		one_request((long)number);
	free_thread();
	return NULL;
}

int main(int argc, char **argv)
{
	void *library = argc == 5 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	char *arguments[] = { argv[0], NULL };
	pthread_t threads[THREADS_MAX];
	int count = argc == 5 ? atoi(argv[3]) : 0;

	if (!library || count < 1 || count > THREADS_MAX) {
		fprintf(stderr, "%s\n", argc == 5 ? dlerror() : "libphp.so, script, threads, seconds");
		return 1;
	}
	embed_init = symbol(library, "php_embed_init");
	embed_shutdown = symbol(library, "php_embed_shutdown");
	resource = symbol(library, "ts_resource_ex");
	ls_cache = symbol(library, "tsrm_get_ls_cache");
	free_thread = symbol(library, "ts_free_thread");
	request_startup = symbol(library, "php_request_startup");
	request_shutdown = symbol(library, "php_request_shutdown");
	open_script = symbol(library, "zend_stream_init_filename");
	destroy_handle = symbol(library, "zend_destroy_file_handle");
	execute = symbol(library, "php_execute_script");
	request_offset = symbol(library, "sapi_globals_offset");
	script = argv[2];
	end = time(NULL) + atoi(argv[4]);
	if (embed_init(1, arguments) != 0)
		return 1;
	*(const char **)symbol(library, "sapi_module") = "fpm-fcgi"; /* its name */
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	embed_shutdown();
	return 0;
}
