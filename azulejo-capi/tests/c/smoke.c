/* Creates, writes and reads an array through the header; argv[1] is a folder that does not exist. */
#include "azulejo_tiledb.h"
#include <stdio.h>
#include <string.h>

static tiledb_ctx_t* ctx;

static int failed(const char* what) {
  tiledb_error_t* error = NULL;
  const char* message = "?";
  if (tiledb_ctx_get_last_error(ctx, &error) == TILEDB_OK && error) tiledb_error_message(error, &message);
  fprintf(stderr, "%s: %s\n", what, message);
  tiledb_error_free(&error);
  return 1;
}
#define OK(call) do { if ((call) != TILEDB_OK) return failed(#call); } while (0)

int main(int argc, char** argv) {
  int32_t major, minor, patch;
  tiledb_version(&major, &minor, &patch);
  if (argc != 2 || major != TILEDB_VERSION_MAJOR || minor != TILEDB_VERSION_MINOR) return 2;
  OK(tiledb_ctx_alloc(NULL, &ctx));

  int32_t bounds[2] = {1, 4}, extent = 2;
  tiledb_dimension_t* d;
  tiledb_domain_t* domain;
  tiledb_attribute_t* a;
  tiledb_array_schema_t* schema;
  OK(tiledb_dimension_alloc(ctx, "d", TILEDB_INT32, bounds, &extent, &d));
  OK(tiledb_domain_alloc(ctx, &domain));
  OK(tiledb_domain_add_dimension(ctx, domain, d));
  OK(tiledb_attribute_alloc(ctx, "a", TILEDB_FLOAT32, &a));
  OK(tiledb_array_schema_alloc(ctx, TILEDB_DENSE, &schema));
  OK(tiledb_array_schema_set_domain(ctx, schema, domain));
  OK(tiledb_array_schema_add_attribute(ctx, schema, a));
  OK(tiledb_array_create(ctx, argv[1], schema));

  float values[4] = {1, 2, 3, 4}, got[4] = {0};
  uint64_t size = sizeof values;
  tiledb_array_t* array;
  tiledb_query_t* query;
  tiledb_query_type_t modes[2] = {TILEDB_WRITE, TILEDB_READ};
  for (int i = 0; i < 2; i++) {
    tiledb_query_status_t status;
    OK(tiledb_array_alloc(ctx, argv[1], &array));
    OK(tiledb_array_open(ctx, array, modes[i]));
    OK(tiledb_query_alloc(ctx, array, modes[i], &query));
    OK(tiledb_query_set_layout(ctx, query, TILEDB_ROW_MAJOR));
    OK(tiledb_query_set_data_buffer(ctx, query, "a", i ? got : values, &size));
    OK(tiledb_query_submit(ctx, query));
    OK(tiledb_query_get_status(ctx, query, &status));
    if (status != TILEDB_COMPLETED) return failed("status");
    if (i) {
      tiledb_query_channel_t* channel;
      OK(tiledb_query_get_default_channel(ctx, query, &channel));
      tiledb_query_channel_free(ctx, &channel);
    }
    tiledb_query_free(&query);
    OK(tiledb_array_close(ctx, array));
    tiledb_array_free(&array);
  }
  if (!tiledb_aggregate_count || !tiledb_channel_operator_sum) return failed("data symbols");
  tiledb_array_schema_free(&schema);
  tiledb_attribute_free(&a);
  tiledb_domain_free(&domain);
  tiledb_dimension_free(&d);
  tiledb_ctx_free(&ctx);
  if (size != sizeof values || memcmp(values, got, sizeof values)) return failed("cells");
  puts("read what was written");
  return 0;
}
