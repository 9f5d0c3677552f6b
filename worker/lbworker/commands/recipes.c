/* SPDX-License-Identifier: MIT */
/* recipes.c - lbworker recipes: the table of recipes with their six slots, and one of a file. */
#include <stdio.h>
#include <string.h>

#include "worker/lbworker/commands/command.h"
#include "worker/lbworker/recipes/recipe.h"

static void print_slots(const struct recipe *r)
{
	char text[SLOT_BYTES];

	for (int i = 0; i < SLOTS; i++)
		printf("  %-10s %s\n", recipe_slot_names[i], slot_print(&r->slot[i], text));
}

static int print_recipe(const char *name, const char *help, const char *source, struct err *err)
{
	struct recipe r;

	if (recipe_find(&r, name, err))
		return -1;
	printf("%s%s%s%s%s%s\n", name, help[0] ? ": " : "", help, source[0] ? " [" : "", source,
	       source[0] ? "]" : "");
	print_slots(&r);
	recipe_clear(&r);
	return 0;
}

static int print_named(const char *name, struct err *err)
{
	for (size_t i = 0; recipe_row(i); i++)
		if (strcmp(recipe_row(i)->name, name) == 0)
			return print_recipe(name, recipe_row(i)->help, recipe_row(i)->source, err);
	return print_recipe(name, "", "", err);
}

int command_recipes(int argc, char **argv)
{
	struct err err = { 0 };
	int rc = 0;

	for (int i = 1; rc == 0 && i < argc; i++)
		rc = print_named(argv[i], &err);
	for (size_t i = 0; argc == 1 && rc == 0 && recipe_row(i); i++)
		rc = print_named(recipe_row(i)->name, &err);
	return rc == 0 ? EXIT_DONE : command_failed(&err);
}
