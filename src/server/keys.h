/* SPDX-License-Identifier: Apache-2.0 */
/* keys: API keys, and what the tenant of each may have (docs/http.md). */
#ifndef EXECPY_SERVER_KEYS_H
#define EXECPY_SERVER_KEYS_H

#include "server/tenant.h"

#include "base/bytes.h"
#include "base/error.h"

#define KEY_PREFIX    "execpy_"
#define KEY_TEXT_MAX  64 /* of a key, with its NUL */
#define KEY_RAW_BYTES 32 /* of randomness in it */

/* Takes the tenants that a file of keys describes, instead of those that were there; on
 * failure nothing changes. `origin` names the file in messages. */
int keys_parse(struct tenants *tenants, struct span text, const char *origin, struct error *err);
/* Without keys: everybody is one tenant. */
void keys_none(struct tenants *tenants);
/* Whose key this is; NULL: nobody's. Takes as long for any. */
struct tenant *keys_find(struct tenants *tenants, const char *key);
/* Counts a request; false when the tenant has made as many as it may, and how many seconds
 * until the next. */
bool keys_take_request(struct tenant *tenant, unsigned *ret_seconds);
/* Takes over a list that is replaced, until keys_free(): requests and contexts that are under
 * way keep pointers to its texts. */
void keys_retire(struct tenants *tenants, char ***list);
void keys_free(struct tenants *tenants);

/* Makes a key for a new tenant and adds its hash to the file, which is made when it is not
 * there. The key is told only here. */
int keys_add(const char *path, const char *name, char ret_key[KEY_TEXT_MAX], struct error *err);

#endif
