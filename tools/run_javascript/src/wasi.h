/* Included before every source file of QuickJS.
 *
 * QuickJS has no limit for its stack where `__wasi__` is defined: deep recursion would then be a trap,
 * and with the instance all variables would be lost, instead of a RangeError of the script. Its other
 * uses of the macro stand beside EMSCRIPTEN, which the build defines, or ask for `malloc_usable_size`,
 * which `__GLIBC__` gives as well. The system's own headers are read before the macro goes.
 *
 * QuickJS keeps small values in 4 KiB blocks, one for each of 31 sizes, so the first script of a store
 * writes to a page for each size that it needs, and each is a page that the store no longer shares. Where
 * `__SANITIZE_ADDRESS__` is defined, which changes nothing else, it asks the C library for each value, and
 * new ones lie side by side: 24 KiB less for each live store, and fewer pages to copy at its first call. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#undef __wasi__
#define __GLIBC__ 2
#define __SANITIZE_ADDRESS__ 1
