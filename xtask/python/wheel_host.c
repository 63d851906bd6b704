/* Loads the library of a wheel where there is no Python for it, and has the engine write and read an
 * array through the C functions that it exports: wheel_host.py builds and runs it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 10000

static void *library;

static void *find(const char *name) {
  void *found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "there is no %s\n", name);
    exit(1);
  }
  return found;
}

#define CALL(name, ...)                              \
  do {                                               \
    if (((int32_t(*)())find(name))(__VA_ARGS__)) {   \
      fprintf(stderr, "%s failed\n", name);          \
      return 1;                                      \
    }                                                \
  } while (0)

int main(int count, char **words) {
  void *ctx = 0, *domain = 0, *dimension = 0, *attribute = 0, *schema = 0;
  void *array = 0, *query = 0, *subarray = 0, *none = 0;
  int64_t range[2] = {0, CELLS - 1}, extent = 100;
  static char written[CELLS], found[CELLS];
  uint64_t size = CELLS;
  if (count != 3 || !(library = dlopen(words[1], RTLD_LAZY))) {
    fprintf(stderr, "%s\n", count == 3 ? dlerror() : "usage: host LIBRARY ARRAY");
    return 1;
  }
  for (int i = 0; i < CELLS; i++) written[i] = (char)(i * 7);
  /* Numbers: INT64 1, CHAR 4, dense 0, write 1, read 0, row-major 0. */
  CALL("tiledb_ctx_alloc", none, &ctx);
  CALL("tiledb_domain_alloc", ctx, &domain);
  CALL("tiledb_dimension_alloc", ctx, "d", 1, range, &extent, &dimension);
  CALL("tiledb_domain_add_dimension", ctx, domain, dimension);
  CALL("tiledb_attribute_alloc", ctx, "v", 4, &attribute);
  CALL("tiledb_array_schema_alloc", ctx, 0, &schema);
  CALL("tiledb_array_schema_set_domain", ctx, schema, domain);
  CALL("tiledb_array_schema_add_attribute", ctx, schema, attribute);
  CALL("tiledb_array_create", ctx, words[2], schema);
  CALL("tiledb_array_alloc", ctx, words[2], &array);
  CALL("tiledb_array_open", ctx, array, 1);
  CALL("tiledb_query_alloc", ctx, array, 1, &query);
  CALL("tiledb_query_set_layout", ctx, query, 0);
  CALL("tiledb_query_set_data_buffer", ctx, query, "v", written, &size);
  CALL("tiledb_query_submit", ctx, query);
  CALL("tiledb_query_finalize", ctx, query);
  CALL("tiledb_array_close", ctx, array);
  CALL("tiledb_array_open", ctx, array, 0);
  CALL("tiledb_query_alloc", ctx, array, 0, &query);
  CALL("tiledb_subarray_alloc", ctx, array, &subarray);
  CALL("tiledb_subarray_add_range", ctx, subarray, 0, &range[0], &range[1], none);
  CALL("tiledb_query_set_subarray_t", ctx, query, subarray);
  CALL("tiledb_query_set_layout", ctx, query, 0);
  size = CELLS;
  CALL("tiledb_query_set_data_buffer", ctx, query, "v", found, &size);
  CALL("tiledb_query_submit", ctx, query);
  for (int i = 0; i < CELLS; i++) {
    if (found[i] != written[i]) {
      fprintf(stderr, "cell %d is another one\n", i);
      return 1;
    }
  }
  printf("  loaded without Python: %d cells written and read through its C functions\n", CELLS);
  return 0;
}
