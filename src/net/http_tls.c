/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_tls.h"

#include "base/io.h"

#define CHAIN_MAX 16
#define PEM_MAX MIB(1)
#define IDENTITIES_MAX 64 /* of one run: a certificate that is renewed every day lives two months without a restart */

struct http_identity {
	struct http_identity *next;
	struct buf pem; /* both files: equal bytes change nothing */
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned int count;
	gnutls_privkey_t key;
};

static void identity_free(struct http_identity *id)
{
	if (!id)
		return;
	for (unsigned int i = 0; i < id->count; i++)
		gnutls_pcert_deinit(&id->chain[i]);
	if (id->key)
		gnutls_privkey_deinit(id->key);
	buf_release(&id->pem);
	free(id);
}

static void identity_freep(struct http_identity **id)
{
	identity_free(*id);
}

static gnutls_datum_t datum(const struct buf *b)
{
	return (gnutls_datum_t){ (unsigned char *)b->ptr, (unsigned int)b->len };
}

static int explain(struct buf *why, const char *path, const char *what, int r)
{
	if (why)
		buf_addf(why, "%s: %s", path, what);
	return r;
}

static int parse(struct http_identity *id, const struct http_tls *tls, const struct buf *cert, const struct buf *key,
		 struct buf *why)
{
	gnutls_datum_t cert_pem = datum(cert), key_pem = datum(key);
	unsigned int count = CHAIN_MAX;
	int r = gnutls_pcert_list_import_x509_raw(id->chain, &count, &cert_pem, GNUTLS_X509_FMT_PEM, 0);

	if (r < 0)
		return explain(why, tls->cert_path, gnutls_strerror(r), -EINVAL);
	id->count = count;
	r = gnutls_privkey_init(&id->key);
	r = r < 0 ? r : gnutls_privkey_import_x509_raw(id->key, &key_pem, GNUTLS_X509_FMT_PEM, NULL, 0);
	return r < 0 ? explain(why, tls->key_path, gnutls_strerror(r), -EINVAL) : 0;
}

int http_tls_load(struct http_tls *tls, struct buf *why)
{
	scoped(identity_freep) struct http_identity *id = calloc(1, sizeof(*id));
	scoped(buf_release) struct buf cert = BUF_INIT(PEM_MAX), key = BUF_INIT(PEM_MAX);
	struct http_identity *current = atomic_load(&tls->current);
	unsigned int count = 0;
	int r;

	if (!id)
		return -ENOMEM;
	r = io_read_file(tls->cert_path, &cert);
	if (r < 0)
		return explain(why, tls->cert_path, strerror(-r), r);
	r = io_read_file(tls->key_path, &key);
	if (r < 0)
		return explain(why, tls->key_path, strerror(-r), r);
	id->pem = (struct buf)BUF_INIT(2 * PEM_MAX);
	buf_adds(&id->pem, buf_str(&cert));
	buf_adds(&id->pem, buf_str(&key));
	if (id->pem.error)
		return id->pem.error;
	if (current && str_eq(buf_str(&id->pem), buf_str(&current->pem)))
		return 0;
	for (const struct http_identity *old = tls->all; old; old = old->next)
		count++;
	if (count == IDENTITIES_MAX)
		return -E2BIG;
	r = parse(id, tls, &cert, &key, why);
	if (r < 0)
		return r;
	id->next = tls->all;
	tls->all = id;
	atomic_store(&tls->current, id);
	id = NULL; /* moved out */
	return 0;
}

void http_tls_release(struct http_tls *tls)
{
	while (tls->all) {
		struct http_identity *next = tls->all->next;

		identity_free(tls->all);
		tls->all = next;
	}
	atomic_store(&tls->current, NULL);
}

static _Atomic(struct http_tls *) in_use; /* the one of the process: see http_tls_select() */

int http_tls_use(struct http_tls *tls)
{
	struct http_tls *nobody = NULL;

	if (!tls) {
		atomic_store(&in_use, NULL);
		return 0;
	}
	return atomic_compare_exchange_strong(&in_use, &nobody, tls) ? 0 : -EBUSY;
}

int http_tls_select(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
		    const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
		    unsigned int *count, gnutls_privkey_t *key)
{
	struct http_tls *tls = atomic_load(&in_use);
	struct http_identity *id = tls ? atomic_load(&tls->current) : NULL;

	(void)session;
	(void)authorities;
	(void)authority_count;
	(void)algorithms;
	(void)algorithm_count;
	if (!id)
		return -1;
	*chain = id->chain;
	*count = id->count;
	*key = id->key;
	return 0;
}
