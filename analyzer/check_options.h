/* check_options.h - for the launcher: whether the shim will understand what OPSDEBUG_* say. */
#ifndef ANALYZER_CHECK_OPTIONS_H
#define ANALYZER_CHECK_OPTIONS_H

/* Reads the environment with the shim's own parser (shim/options.c). Exit code 0, or 2 with one line on standard error
 * about the first value that is not understood. `ops-analyze check-options`; not among the commands of the help. */
int check_options(void);

#endif
