/* SPDX-License-Identifier: Apache-2.0 */
/* templates: see templates.h. */
#include "policy/templates.h"

#include "base/cleanup.h"

#include <stdbool.h>
#include <string.h>

/* The files of warm_up/, embedded. A template runs those of all its modules. */
extern const char warm_up_numpy[], warm_up_pandas[], warm_up_plot[];

const struct template_info template_infos[TEMPLATE_COUNT] = {
	{"bare", {NULL}, ""},
	{"numpy", {"numpy", NULL}, warm_up_numpy},
	{"pandas", {"numpy", "pandas", NULL}, warm_up_pandas},
	{"plot", {"numpy", "pandas", "matplotlib.pyplot", NULL}, warm_up_plot},
};

const struct template_info *template_find(const char *name)
{
	for (size_t i = 0; i < TEMPLATE_COUNT; i++)
		if (strcmp(template_infos[i].name, name) == 0)
			return &template_infos[i];
	return NULL;
}

static bool imports(const struct template_info *template, const char *module)
{
	for (size_t i = 0; template->modules[i]; i++)
		if (strcmp(template->modules[i], module) == 0)
			return true;
	return false;
}

const struct template_info *template_covering(const char *const *modules, size_t count)
{
	/* Each imports what those before it do, so the last one that adds a wanted
	 * module has them all. */
	size_t best = 0;

	for (size_t i = 1; i < TEMPLATE_COUNT; i++)
		for (size_t j = 0; j < count; j++)
			if (imports(&template_infos[i], modules[j]) &&
			    !imports(&template_infos[i - 1], modules[j]))
				best = i;
	return &template_infos[best];
}
