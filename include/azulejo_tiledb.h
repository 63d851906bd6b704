/* Made by `cargo xtask header`: do not edit. */
/* What functions need: types, enumerators, structures, callbacks. `cargo xtask header` puts it before the functions. */
#ifndef AZULEJO_TILEDB_H
#define AZULEJO_TILEDB_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of libtiledb that this library stands in for. */
#define TILEDB_VERSION_MAJOR 2
#define TILEDB_VERSION_MINOR 30
#define TILEDB_VERSION_PATCH 0

/* What functions return. */
#define TILEDB_OK 0
#define TILEDB_ERR (-1)
#define TILEDB_OOM (-2)
#define TILEDB_INVALID_CONTEXT (-3)
#define TILEDB_INVALID_ERROR (-4)
#define TILEDB_BUDGET_UNAVAILABLE (-5)

#define TILEDB_VAR_NUM UINT32_MAX
#define TILEDB_MAX_PATH 4096

typedef int32_t tiledb_datatype_t;
enum {
  TILEDB_INT32 = 0,
  TILEDB_INT64 = 1,
  TILEDB_FLOAT32 = 2,
  TILEDB_FLOAT64 = 3,
  TILEDB_CHAR = 4,
  TILEDB_INT8 = 5,
  TILEDB_UINT8 = 6,
  TILEDB_INT16 = 7,
  TILEDB_UINT16 = 8,
  TILEDB_UINT32 = 9,
  TILEDB_UINT64 = 10,
  TILEDB_STRING_ASCII = 11,
  TILEDB_STRING_UTF8 = 12,
  TILEDB_STRING_UTF16 = 13,
  TILEDB_STRING_UTF32 = 14,
  TILEDB_STRING_UCS2 = 15,
  TILEDB_STRING_UCS4 = 16,
  TILEDB_ANY = 17,
  TILEDB_DATETIME_YEAR = 18,
  TILEDB_DATETIME_MONTH = 19,
  TILEDB_DATETIME_WEEK = 20,
  TILEDB_DATETIME_DAY = 21,
  TILEDB_DATETIME_HR = 22,
  TILEDB_DATETIME_MIN = 23,
  TILEDB_DATETIME_SEC = 24,
  TILEDB_DATETIME_MS = 25,
  TILEDB_DATETIME_US = 26,
  TILEDB_DATETIME_NS = 27,
  TILEDB_DATETIME_PS = 28,
  TILEDB_DATETIME_FS = 29,
  TILEDB_DATETIME_AS = 30,
  TILEDB_TIME_HR = 31,
  TILEDB_TIME_MIN = 32,
  TILEDB_TIME_SEC = 33,
  TILEDB_TIME_MS = 34,
  TILEDB_TIME_US = 35,
  TILEDB_TIME_NS = 36,
  TILEDB_TIME_PS = 37,
  TILEDB_TIME_FS = 38,
  TILEDB_TIME_AS = 39,
  TILEDB_BLOB = 40,
  TILEDB_BOOL = 41,
  TILEDB_GEOM_WKB = 42,
  TILEDB_GEOM_WKT = 43
};

typedef int32_t tiledb_filesystem_t;
enum {
  TILEDB_HDFS = 0,
  TILEDB_S3 = 1,
  TILEDB_AZURE = 2,
  TILEDB_GCS = 3,
  TILEDB_MEMFS = 4,
  TILEDB_TILEDBFS = 5
};

typedef int32_t tiledb_data_protocol_t;
enum {
  TILEDB_DATA_PROTOCOL_v2 = 0,
  TILEDB_DATA_PROTOCOL_v3 = 1
};

typedef int32_t tiledb_filter_type_t;
enum {
  TILEDB_FILTER_NONE = 0,
  TILEDB_FILTER_GZIP = 1,
  TILEDB_FILTER_ZSTD = 2,
  TILEDB_FILTER_LZ4 = 3,
  TILEDB_FILTER_RLE = 4,
  TILEDB_FILTER_BZIP2 = 5,
  TILEDB_FILTER_DOUBLE_DELTA = 6,
  TILEDB_FILTER_BIT_WIDTH_REDUCTION = 7,
  TILEDB_FILTER_BITSHUFFLE = 8,
  TILEDB_FILTER_BYTESHUFFLE = 9,
  TILEDB_FILTER_POSITIVE_DELTA = 10,
  TILEDB_FILTER_CHECKSUM_MD5 = 12,
  TILEDB_FILTER_CHECKSUM_SHA256 = 13,
  TILEDB_FILTER_DICTIONARY = 14,
  TILEDB_FILTER_SCALE_FLOAT = 15,
  TILEDB_FILTER_XOR = 16,
  TILEDB_FILTER_DEPRECATED = 17,
  TILEDB_FILTER_WEBP = 18,
  TILEDB_FILTER_DELTA = 19,
  TILEDB_INTERNAL_FILTER_COUNT = 20
};

typedef int32_t tiledb_filter_option_t;
enum {
  TILEDB_COMPRESSION_LEVEL = 0,
  TILEDB_BIT_WIDTH_MAX_WINDOW = 1,
  TILEDB_POSITIVE_DELTA_MAX_WINDOW = 2,
  TILEDB_SCALE_FLOAT_BYTEWIDTH = 3,
  TILEDB_SCALE_FLOAT_FACTOR = 4,
  TILEDB_SCALE_FLOAT_OFFSET = 5,
  TILEDB_WEBP_QUALITY = 6,
  TILEDB_WEBP_INPUT_FORMAT = 7,
  TILEDB_WEBP_LOSSLESS = 8,
  TILEDB_COMPRESSION_REINTERPRET_DATATYPE = 9
};

typedef int32_t tiledb_filter_webp_format_t;
enum {
  TILEDB_WEBP_NONE = 0,
  TILEDB_WEBP_RGB = 1,
  TILEDB_WEBP_BGR = 2,
  TILEDB_WEBP_RGBA = 3,
  TILEDB_WEBP_BGRA = 4
};

typedef int32_t tiledb_array_type_t;
enum {
  TILEDB_DENSE = 0,
  TILEDB_SPARSE = 1
};

typedef int32_t tiledb_layout_t;
enum {
  TILEDB_ROW_MAJOR = 0,
  TILEDB_COL_MAJOR = 1,
  TILEDB_GLOBAL_ORDER = 2,
  TILEDB_UNORDERED = 3,
  TILEDB_HILBERT = 4
};

typedef int32_t tiledb_query_type_t;
enum {
  TILEDB_READ = 0,
  TILEDB_WRITE = 1,
  TILEDB_DELETE = 2,
  TILEDB_UPDATE = 3,
  TILEDB_MODIFY_EXCLUSIVE = 4
};

typedef int32_t tiledb_encryption_type_t;
enum {
  TILEDB_NO_ENCRYPTION = 0,
  TILEDB_AES_256_GCM = 1
};

typedef int32_t tiledb_data_order_t;
enum {
  TILEDB_UNORDERED_DATA = 0,
  TILEDB_INCREASING_DATA = 1,
  TILEDB_DECREASING_DATA = 2
};

typedef int32_t tiledb_object_t;
enum {
  TILEDB_INVALID = 0,
  TILEDB_GROUP = 1,
  TILEDB_ARRAY = 2
};

typedef int32_t tiledb_walk_order_t;
enum {
  TILEDB_PREORDER = 0,
  TILEDB_POSTORDER = 1
};

typedef int32_t tiledb_vfs_mode_t;
enum {
  TILEDB_VFS_READ = 0,
  TILEDB_VFS_WRITE = 1,
  TILEDB_VFS_APPEND = 2
};

typedef int32_t tiledb_query_status_t;
enum {
  TILEDB_FAILED = 0,
  TILEDB_COMPLETED = 1,
  TILEDB_INPROGRESS = 2,
  TILEDB_INCOMPLETE = 3,
  TILEDB_UNINITIALIZED = 4,
  TILEDB_INITIALIZED = 5
};

typedef int32_t tiledb_query_condition_op_t;
enum {
  TILEDB_LT = 0,
  TILEDB_LE = 1,
  TILEDB_GT = 2,
  TILEDB_GE = 3,
  TILEDB_EQ = 4,
  TILEDB_NE = 5,
  TILEDB_IN = 6,
  TILEDB_NOT_IN = 7
};

typedef int32_t tiledb_query_condition_combination_op_t;
enum {
  TILEDB_AND = 0,
  TILEDB_OR = 1,
  TILEDB_NOT = 2
};

typedef int32_t tiledb_mime_type_t;
enum {
  TILEDB_MIME_AUTODETECT = 0,
  TILEDB_MIME_TIFF = 1,
  TILEDB_MIME_PDF = 2
};

typedef int32_t tiledb_current_domain_type_t;
enum {
  TILEDB_NDRECTANGLE = 0
};

typedef int32_t tiledb_field_origin_t;
enum {
  TILEDB_ATTRIBUTE_FIELD = 0,
  TILEDB_DIMENSION_FIELD = 1,
  TILEDB_AGGREGATE_FIELD = 2
};

typedef int32_t tiledb_query_status_details_reason_t;
enum {
  TILEDB_REASON_NONE = 0,
  TILEDB_REASON_USER_BUFFER_SIZE = 1,
  TILEDB_REASON_MEMORY_BUDGET = 2
};

typedef int32_t tiledb_serialization_type_t;
enum {
  TILEDB_JSON = 0,
  TILEDB_CAPNP = 1
};
/* An inclusive range of one dimension. */
typedef struct {
  const void* min;
  uint64_t min_size;
  const void* max;
  uint64_t max_size;
} tiledb_range_t;

/* Why a query is incomplete. */
typedef struct {
  tiledb_query_status_details_reason_t incomplete_reason;
} tiledb_query_status_details_t;

/* Callbacks: 1 to go on, 0 to stop, -1 for an error. */
typedef int32_t (*tiledb_vfs_ls_callback_t)(const char* path, void* data);
typedef int32_t (*tiledb_ls_callback_t)(const char* path, size_t path_len, uint64_t object_size, void* data);
typedef int32_t (*tiledb_ls_callback_v2_t)(const char* path, size_t path_len, uint64_t object_size, uint8_t is_dir, void* data);
typedef int32_t (*tiledb_object_callback_t)(const char* path, tiledb_object_t type, void* data);

/* The version of this library, which is Azulejo and no libtiledb. */
const char* azulejo_version(void);
typedef struct tiledb_apple_handle_t tiledb_apple_t;
typedef struct tiledb_array_handle_t tiledb_array_t;
typedef struct tiledb_attribute_handle_t tiledb_attribute_t;
typedef struct tiledb_buffer_handle_t tiledb_buffer_t;
typedef struct tiledb_buffer_list_handle_t tiledb_buffer_list_t;
typedef struct tiledb_query_channel_handle_t tiledb_query_channel_t;
typedef struct tiledb_query_condition_handle_t tiledb_query_condition_t;
typedef struct tiledb_config_handle_t tiledb_config_t;
typedef struct tiledb_config_iter_handle_t tiledb_config_iter_t;
typedef struct tiledb_ctx_handle_t tiledb_ctx_t;
typedef struct tiledb_current_domain_handle_t tiledb_current_domain_t;
typedef struct tiledb_dimension_handle_t tiledb_dimension_t;
typedef struct tiledb_domain_handle_t tiledb_domain_t;
typedef struct tiledb_enumeration_handle_t tiledb_enumeration_t;
typedef struct tiledb_error_handle_t tiledb_error_t;
typedef struct tiledb_array_schema_evolution_handle_t tiledb_array_schema_evolution_t;
typedef struct tiledb_vfs_fh_handle_t tiledb_vfs_fh_t;
typedef struct tiledb_filter_handle_t tiledb_filter_t;
typedef struct tiledb_filter_list_handle_t tiledb_filter_list_t;
typedef struct tiledb_group_handle_t tiledb_group_t;
typedef struct tiledb_fragment_info_handle_t tiledb_fragment_info_t;
typedef struct tiledb_dimension_label_handle_t tiledb_dimension_label_t;
typedef struct tiledb_channel_operation_handle_t tiledb_channel_operation_t;
typedef struct tiledb_channel_operator_handle_t tiledb_channel_operator_t;
typedef struct tiledb_pear_handle_t tiledb_pear_t;
typedef struct tiledb_consolidation_plan_handle_t tiledb_consolidation_plan_t;
typedef struct tiledb_profile_handle_t tiledb_profile_t;
typedef struct tiledb_query_field_handle_t tiledb_query_field_t;
typedef struct tiledb_query_handle_t tiledb_query_t;
typedef struct tiledb_ndrectangle_handle_t tiledb_ndrectangle_t;
typedef struct tiledb_array_schema_handle_t tiledb_array_schema_t;
typedef struct tiledb_string_handle_t tiledb_string_t;
typedef struct tiledb_subarray_handle_t tiledb_subarray_t;
typedef struct tiledb_vfs_handle_t tiledb_vfs_t;

extern const tiledb_channel_operator_t* tiledb_channel_operator_sum;
extern const tiledb_channel_operator_t* tiledb_channel_operator_mean;
extern const tiledb_channel_operator_t* tiledb_channel_operator_min;
extern const tiledb_channel_operator_t* tiledb_channel_operator_max;
extern const tiledb_channel_operator_t* tiledb_channel_operator_null_count;
extern const tiledb_channel_operation_t* tiledb_aggregate_count;

int32_t tiledb_aggregate_count_get(tiledb_ctx_t* ctx, const tiledb_channel_operation_t** out);
int32_t tiledb_aggregate_free(tiledb_ctx_t* ctx, tiledb_channel_operation_t** operation);
int32_t tiledb_array_alloc(tiledb_ctx_t* ctx, const char* uri, tiledb_array_t** array);
int32_t tiledb_array_close(tiledb_ctx_t* ctx, const tiledb_array_t* array);
int32_t tiledb_array_consolidate(tiledb_ctx_t* ctx, const char* uri, const tiledb_config_t* config);
int32_t tiledb_array_consolidate_fragments(tiledb_ctx_t* ctx, const char* uri, const char** fragments, uint64_t num, const tiledb_config_t* config);
int32_t tiledb_array_create(tiledb_ctx_t* ctx, const char* uri, const tiledb_array_schema_t* schema);
int32_t tiledb_array_delete(tiledb_ctx_t* ctx, const char* uri);
int32_t tiledb_array_delete_fragments_list(tiledb_ctx_t* ctx, const char* uri, const char** fragments, size_t num);
int32_t tiledb_array_delete_fragments_v2(tiledb_ctx_t* ctx, const char* uri, uint64_t start, uint64_t end);
int32_t tiledb_array_delete_metadata(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* key);
int32_t tiledb_array_encryption_type(tiledb_ctx_t* ctx, const char* uri, int32_t* id);
int32_t tiledb_array_evolve(tiledb_ctx_t* ctx, const char* uri, const tiledb_array_schema_evolution_t* evolution);
void tiledb_array_free(tiledb_array_t** handle);
int32_t tiledb_array_get_config(tiledb_ctx_t* ctx, const tiledb_array_t* array, tiledb_config_t** config);
int32_t tiledb_array_get_enumeration(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* name, tiledb_enumeration_t** enumeration);
int32_t tiledb_array_get_metadata(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* key, int32_t* id, uint32_t* num, const void** value);
int32_t tiledb_array_get_metadata_from_index(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint64_t index, const char** key, uint32_t* key_len, int32_t* id, uint32_t* num, const void** value);
int32_t tiledb_array_get_metadata_num(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint64_t* num);
int32_t tiledb_array_get_non_empty_domain(tiledb_ctx_t* ctx, const tiledb_array_t* array, void* out, int32_t* is_empty);
int32_t tiledb_array_get_non_empty_domain_from_index(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint32_t index, void* out, int32_t* is_empty);
int32_t tiledb_array_get_non_empty_domain_from_name(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* name, void* out, int32_t* is_empty);
int32_t tiledb_array_get_non_empty_domain_var_from_index(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint32_t index, void* start, void* end, int32_t* is_empty);
int32_t tiledb_array_get_non_empty_domain_var_from_name(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* name, void* start, void* end, int32_t* is_empty);
int32_t tiledb_array_get_non_empty_domain_var_size_from_index(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint32_t index, uint64_t* start, uint64_t* end, int32_t* is_empty);
int32_t tiledb_array_get_non_empty_domain_var_size_from_name(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* name, uint64_t* start, uint64_t* end, int32_t* is_empty);
int32_t tiledb_array_get_open_timestamp_end(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint64_t* timestamp);
int32_t tiledb_array_get_open_timestamp_start(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint64_t* timestamp);
int32_t tiledb_array_get_query_type(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t* kind);
int32_t tiledb_array_get_schema(tiledb_ctx_t* ctx, const tiledb_array_t* array, tiledb_array_schema_t** schema);
int32_t tiledb_array_get_uri(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char** uri);
int32_t tiledb_array_has_metadata_key(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* key, int32_t* id, int32_t* has);
int32_t tiledb_array_is_open(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t* is_open);
int32_t tiledb_array_load_all_enumerations(tiledb_ctx_t* ctx, const tiledb_array_t* array);
int32_t tiledb_array_load_enumerations_all_schemas(tiledb_ctx_t* ctx, const tiledb_array_t* array);
int32_t tiledb_array_open(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind);
int32_t tiledb_array_put_metadata(tiledb_ctx_t* ctx, const tiledb_array_t* array, const char* key, int32_t id, uint32_t num, const void* value);
int32_t tiledb_array_reopen(tiledb_ctx_t* ctx, const tiledb_array_t* array);
int32_t tiledb_array_schema_add_attribute(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const tiledb_attribute_t* attr);
int32_t tiledb_array_schema_add_dimension_label(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint32_t index, const char* name, int32_t order, int32_t id);
int32_t tiledb_array_schema_add_enumeration(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const tiledb_enumeration_t* enumeration);
int32_t tiledb_array_schema_alloc(tiledb_ctx_t* ctx, int32_t id, tiledb_array_schema_t** schema);
int32_t tiledb_array_schema_alloc_at_timestamp(tiledb_ctx_t* ctx, int32_t id, uint64_t timestamp, tiledb_array_schema_t** schema);
int32_t tiledb_array_schema_check(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema);
int32_t tiledb_array_schema_dump(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, void* out);
int32_t tiledb_array_schema_dump_str(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, tiledb_string_t** out);
int32_t tiledb_array_schema_evolution_add_attribute(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* evolution, const tiledb_attribute_t* attr);
int32_t tiledb_array_schema_evolution_add_enumeration(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* evolution, const tiledb_enumeration_t* enumeration);
int32_t tiledb_array_schema_evolution_alloc(tiledb_ctx_t* ctx, tiledb_array_schema_evolution_t** evolution);
int32_t tiledb_array_schema_evolution_drop_attribute(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* evolution, const char* name);
int32_t tiledb_array_schema_evolution_drop_enumeration(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* evolution, const char* name);
int32_t tiledb_array_schema_evolution_expand_current_domain(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* evolution, const tiledb_current_domain_t* current);
int32_t tiledb_array_schema_evolution_extend_enumeration(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* evolution, const tiledb_enumeration_t* enumeration);
void tiledb_array_schema_evolution_free(tiledb_array_schema_evolution_t** handle);
int32_t tiledb_array_schema_evolution_set_timestamp_range(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* evolution, uint64_t lo, uint64_t hi);
void tiledb_array_schema_free(tiledb_array_schema_t** handle);
int32_t tiledb_array_schema_get_allows_dups(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, int32_t* allows);
int32_t tiledb_array_schema_get_array_type(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, int32_t* id);
int32_t tiledb_array_schema_get_attribute_from_index(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint32_t index, tiledb_attribute_t** attr);
int32_t tiledb_array_schema_get_attribute_from_name(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, tiledb_attribute_t** attr);
int32_t tiledb_array_schema_get_attribute_num(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint32_t* num);
int32_t tiledb_array_schema_get_capacity(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint64_t* capacity);
int32_t tiledb_array_schema_get_cell_order(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, int32_t* order);
int32_t tiledb_array_schema_get_coords_filter_list(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, tiledb_filter_list_t** list);
int32_t tiledb_array_schema_get_current_domain(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, tiledb_current_domain_t** current);
int32_t tiledb_array_schema_get_dimension_label_from_index(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint64_t index, tiledb_dimension_label_t** label);
int32_t tiledb_array_schema_get_dimension_label_from_name(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, tiledb_dimension_label_t** label);
int32_t tiledb_array_schema_get_dimension_label_num(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint64_t* num);
int32_t tiledb_array_schema_get_domain(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, tiledb_domain_t** domain);
int32_t tiledb_array_schema_get_enumeration_from_attribute_name(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, tiledb_enumeration_t** enumeration);
int32_t tiledb_array_schema_get_enumeration_from_name(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, tiledb_enumeration_t** enumeration);
int32_t tiledb_array_schema_get_offsets_filter_list(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, tiledb_filter_list_t** list);
int32_t tiledb_array_schema_get_tile_order(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, int32_t* order);
int32_t tiledb_array_schema_get_validity_filter_list(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, tiledb_filter_list_t** list);
void tiledb_array_schema_get_version(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint32_t* version);
int32_t tiledb_array_schema_has_attribute(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, int32_t* has);
int32_t tiledb_array_schema_has_dimension_label(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, int32_t* has);
int32_t tiledb_array_schema_load(tiledb_ctx_t* ctx, const char* uri, tiledb_array_schema_t** schema);
int32_t tiledb_array_schema_load_with_config(tiledb_ctx_t* ctx, const tiledb_config_t* config, const char* uri, tiledb_array_schema_t** schema);
int32_t tiledb_array_schema_set_allows_dups(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, int32_t allows);
int32_t tiledb_array_schema_set_capacity(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint64_t capacity);
int32_t tiledb_array_schema_set_cell_order(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, int32_t id);
int32_t tiledb_array_schema_set_coords_filter_list(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const tiledb_filter_list_t* list);
int32_t tiledb_array_schema_set_current_domain(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const tiledb_current_domain_t* current);
int32_t tiledb_array_schema_set_dimension_label_filter_list(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, const tiledb_filter_list_t* list);
int32_t tiledb_array_schema_set_dimension_label_tile_extent(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const char* name, int32_t id, const void* extent);
int32_t tiledb_array_schema_set_domain(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const tiledb_domain_t* domain);
int32_t tiledb_array_schema_set_offsets_filter_list(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const tiledb_filter_list_t* list);
int32_t tiledb_array_schema_set_tile_order(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, int32_t id);
int32_t tiledb_array_schema_set_validity_filter_list(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, const tiledb_filter_list_t* list);
int32_t tiledb_array_schema_timestamp_range(tiledb_ctx_t* ctx, const tiledb_array_schema_t* schema, uint64_t* lo, uint64_t* hi);
int32_t tiledb_array_set_config(tiledb_ctx_t* ctx, const tiledb_array_t* array, const tiledb_config_t* config);
int32_t tiledb_array_set_open_timestamp_end(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint64_t timestamp);
int32_t tiledb_array_set_open_timestamp_start(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint64_t timestamp);
int32_t tiledb_array_type_from_str(const char* str, int32_t* id);
int32_t tiledb_array_type_to_str(int32_t id, const char** str);
void tiledb_array_upgrade_version(tiledb_ctx_t* ctx, const char* uri, const tiledb_config_t* config);
int32_t tiledb_array_vacuum(tiledb_ctx_t* ctx, const char* uri, const tiledb_config_t* config);
int32_t tiledb_as_built_dump(tiledb_string_t** out);
int32_t tiledb_attribute_alloc(tiledb_ctx_t* ctx, const char* name, int32_t id, tiledb_attribute_t** attr);
int32_t tiledb_attribute_dump(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, void* out);
int32_t tiledb_attribute_dump_str(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, tiledb_string_t** out);
void tiledb_attribute_free(tiledb_attribute_t** handle);
int32_t tiledb_attribute_get_cell_size(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, uint64_t* size);
int32_t tiledb_attribute_get_cell_val_num(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, uint32_t* num);
int32_t tiledb_attribute_get_enumeration_name(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, tiledb_string_t** name);
int32_t tiledb_attribute_get_fill_value(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, const void** value, uint64_t* size);
int32_t tiledb_attribute_get_fill_value_nullable(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, const void** value, uint64_t* size, uint8_t* valid);
int32_t tiledb_attribute_get_filter_list(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, tiledb_filter_list_t** list);
int32_t tiledb_attribute_get_name(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, const char** name);
int32_t tiledb_attribute_get_nullable(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, uint8_t* nullable);
int32_t tiledb_attribute_get_type(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, int32_t* id);
int32_t tiledb_attribute_set_cell_val_num(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, uint32_t num);
int32_t tiledb_attribute_set_enumeration_name(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, const char* name);
int32_t tiledb_attribute_set_fill_value(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, const void* value, uint64_t size);
int32_t tiledb_attribute_set_fill_value_nullable(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, const void* value, uint64_t size, uint8_t valid);
int32_t tiledb_attribute_set_filter_list(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, const tiledb_filter_list_t* list);
int32_t tiledb_attribute_set_nullable(tiledb_ctx_t* ctx, const tiledb_attribute_t* attr, uint8_t nullable);
int32_t tiledb_buffer_alloc(tiledb_ctx_t* ctx, tiledb_buffer_t** buffer);
void tiledb_buffer_free(tiledb_buffer_t** handle);
int32_t tiledb_buffer_get_data(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, const void** data, uint64_t* size);
int32_t tiledb_buffer_get_type(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t* out);
int32_t tiledb_buffer_list_alloc(tiledb_ctx_t* ctx, tiledb_buffer_list_t** list);
int32_t tiledb_buffer_list_flatten(tiledb_ctx_t* ctx, const tiledb_buffer_list_t* list, tiledb_buffer_t** buffer);
void tiledb_buffer_list_free(tiledb_buffer_list_t** handle);
int32_t tiledb_buffer_list_get_buffer(tiledb_ctx_t* ctx, const tiledb_buffer_list_t* list, uint64_t index, tiledb_buffer_t** buffer);
int32_t tiledb_buffer_list_get_num_buffers(tiledb_ctx_t* ctx, const tiledb_buffer_list_t* list, uint64_t* num);
int32_t tiledb_buffer_list_get_total_size(tiledb_ctx_t* ctx, const tiledb_buffer_list_t* list, uint64_t* size);
int32_t tiledb_buffer_set_data(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, void* data, uint64_t size);
int32_t tiledb_buffer_set_type(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t id);
int32_t tiledb_channel_apply_aggregate(tiledb_ctx_t* ctx, const tiledb_query_channel_t* channel, const char* name, const tiledb_channel_operation_t* operation);
int32_t tiledb_channel_operator_max_get(tiledb_ctx_t* ctx, const tiledb_channel_operator_t** out);
int32_t tiledb_channel_operator_mean_get(tiledb_ctx_t* ctx, const tiledb_channel_operator_t** out);
int32_t tiledb_channel_operator_min_get(tiledb_ctx_t* ctx, const tiledb_channel_operator_t** out);
int32_t tiledb_channel_operator_null_count_get(tiledb_ctx_t* ctx, const tiledb_channel_operator_t** out);
int32_t tiledb_channel_operator_sum_get(tiledb_ctx_t* ctx, const tiledb_channel_operator_t** out);
int32_t tiledb_config_alloc(tiledb_config_t** config, tiledb_error_t** error);
int32_t tiledb_config_compare(const tiledb_config_t* lhs, const tiledb_config_t* rhs, uint8_t* equal);
void tiledb_config_free(tiledb_config_t** handle);
int32_t tiledb_config_get(const tiledb_config_t* config, const char* param, const char** value, tiledb_error_t** error);
int32_t tiledb_config_iter_alloc(const tiledb_config_t* config, const char* prefix, tiledb_config_iter_t** iter, tiledb_error_t** error);
int32_t tiledb_config_iter_done(const tiledb_config_iter_t* iter, int32_t* done, tiledb_error_t** error);
void tiledb_config_iter_free(tiledb_config_iter_t** handle);
int32_t tiledb_config_iter_here(const tiledb_config_iter_t* iter, const char** param, const char** value, tiledb_error_t** error);
int32_t tiledb_config_iter_next(const tiledb_config_iter_t* iter, tiledb_error_t** error);
int32_t tiledb_config_iter_reset(const tiledb_config_t* config, const tiledb_config_iter_t* iter, const char* prefix, tiledb_error_t** error);
int32_t tiledb_config_load_from_file(const tiledb_config_t* config, const char* filename, tiledb_error_t** error);
int32_t tiledb_config_save_to_file(const tiledb_config_t* config, const char* filename, tiledb_error_t** error);
int32_t tiledb_config_set(const tiledb_config_t* config, const char* param, const char* value, tiledb_error_t** error);
int32_t tiledb_config_unset(const tiledb_config_t* config, const char* param, tiledb_error_t** error);
int32_t tiledb_consolidation_plan_create_with_mbr(tiledb_ctx_t* ctx, const tiledb_array_t* array, uint64_t fragment_size, tiledb_consolidation_plan_t** plan);
int32_t tiledb_consolidation_plan_dump_json_str(tiledb_ctx_t* ctx, const tiledb_consolidation_plan_t* plan, char** out);
void tiledb_consolidation_plan_free(tiledb_consolidation_plan_t** handle);
int32_t tiledb_consolidation_plan_free_json_str(char** text);
int32_t tiledb_consolidation_plan_get_fragment_uri(tiledb_ctx_t* ctx, const tiledb_consolidation_plan_t* plan, uint64_t index, uint64_t fragment, const char** uri);
int32_t tiledb_consolidation_plan_get_num_fragments(tiledb_ctx_t* ctx, const tiledb_consolidation_plan_t* plan, uint64_t index, uint64_t* num);
int32_t tiledb_consolidation_plan_get_num_nodes(tiledb_ctx_t* ctx, const tiledb_consolidation_plan_t* plan, uint64_t* num);
int32_t tiledb_create_unary_aggregate(tiledb_ctx_t* ctx, const tiledb_query_t* query, const tiledb_channel_operator_t* operator_, const char* field, tiledb_channel_operation_t** operation);
int32_t tiledb_ctx_alloc(const tiledb_config_t* config, tiledb_ctx_t** ctx);
int32_t tiledb_ctx_alloc_with_error(const tiledb_config_t* config, tiledb_ctx_t** ctx, tiledb_error_t** error);
int32_t tiledb_ctx_cancel_tasks(tiledb_ctx_t* ctx);
int32_t tiledb_ctx_free(tiledb_ctx_t** handle);
int32_t tiledb_ctx_get_config(tiledb_ctx_t* ctx, tiledb_config_t** config);
int32_t tiledb_ctx_get_data_protocol(tiledb_ctx_t* ctx, const char* uri, int32_t* data_protocol);
int32_t tiledb_ctx_get_last_error(tiledb_ctx_t* ctx, tiledb_error_t** err);
int32_t tiledb_ctx_get_stats(tiledb_ctx_t* ctx, char** stats_json);
int32_t tiledb_ctx_is_supported_fs(tiledb_ctx_t* ctx, int32_t fs, int32_t* is_supported);
int32_t tiledb_ctx_set_tag(tiledb_ctx_t* ctx, const char* key, const char* value);
int32_t tiledb_current_domain_create(tiledb_ctx_t* ctx, tiledb_current_domain_t** current);
int32_t tiledb_current_domain_dump_str(tiledb_ctx_t* ctx, const tiledb_current_domain_t* current, tiledb_string_t** out);
int32_t tiledb_current_domain_free(tiledb_current_domain_t** current);
int32_t tiledb_current_domain_get_is_empty(tiledb_ctx_t* ctx, const tiledb_current_domain_t* current, uint32_t* is_empty);
int32_t tiledb_current_domain_get_ndrectangle(tiledb_ctx_t* ctx, const tiledb_current_domain_t* current, tiledb_ndrectangle_t** ndr);
int32_t tiledb_current_domain_get_type(tiledb_ctx_t* ctx, const tiledb_current_domain_t* current, int32_t* id);
int32_t tiledb_current_domain_set_ndrectangle(tiledb_ctx_t* ctx, const tiledb_current_domain_t* current, const tiledb_ndrectangle_t* ndr);
int32_t tiledb_data_order_from_str(const char* str, int32_t* id);
int32_t tiledb_data_order_to_str(int32_t id, const char** str);
int32_t tiledb_datatype_from_str(const char* str, int32_t* id);
uint64_t tiledb_datatype_size(int32_t id);
int32_t tiledb_datatype_to_str(int32_t id, const char** str);
int32_t tiledb_deserialize_array(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, const char* array_uri, tiledb_array_t** array);
int32_t tiledb_deserialize_array_create(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, tiledb_string_t** storage_uri, tiledb_array_schema_t** array_schema);
int32_t tiledb_deserialize_array_metadata(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, const tiledb_buffer_t* buffer);
int32_t tiledb_deserialize_array_non_empty_domain_all_dimensions(tiledb_ctx_t* ctx, const tiledb_array_t* array, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side);
int32_t tiledb_deserialize_array_nonempty_domain(tiledb_ctx_t* ctx, const tiledb_array_t* array, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, void* nonempty_domain, int32_t* is_empty);
int32_t tiledb_deserialize_array_open(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, tiledb_array_t** array);
int32_t tiledb_deserialize_array_schema(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, tiledb_array_schema_t** array_schema);
int32_t tiledb_deserialize_array_schema_evolution(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, tiledb_array_schema_evolution_t** array_schema_evolution);
int32_t tiledb_deserialize_config(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, tiledb_config_t** config);
int32_t tiledb_deserialize_fragment_info(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, const char* array_uri, int32_t client_side, const tiledb_fragment_info_t* fragment_info);
int32_t tiledb_deserialize_fragment_info_request(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, const tiledb_fragment_info_t* fragment_info);
int32_t tiledb_deserialize_group(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, const tiledb_group_t* group);
int32_t tiledb_deserialize_group_metadata(tiledb_ctx_t* ctx, const tiledb_group_t* group, int32_t kind, const tiledb_buffer_t* buffer);
int32_t tiledb_deserialize_query(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, const tiledb_query_t* query);
int32_t tiledb_deserialize_query_and_array(tiledb_ctx_t* ctx, const tiledb_buffer_t* buffer, int32_t kind, int32_t client_side, const char* array_uri, tiledb_query_t** query, tiledb_array_t** array);
int32_t tiledb_deserialize_query_est_result_sizes(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t kind, int32_t client_side, const tiledb_buffer_t* buffer);
int32_t tiledb_dimension_alloc(tiledb_ctx_t* ctx, const char* name, int32_t id, const void* dim_domain, const void* tile_extent, tiledb_dimension_t** dim);
int32_t tiledb_dimension_dump(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, void* out);
int32_t tiledb_dimension_dump_str(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, tiledb_string_t** out);
void tiledb_dimension_free(tiledb_dimension_t** handle);
int32_t tiledb_dimension_get_cell_val_num(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, uint32_t* num);
int32_t tiledb_dimension_get_domain(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, const void** domain);
int32_t tiledb_dimension_get_filter_list(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, tiledb_filter_list_t** list);
int32_t tiledb_dimension_get_name(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, const char** name);
int32_t tiledb_dimension_get_tile_extent(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, const void** extent);
int32_t tiledb_dimension_get_type(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, int32_t* id);
void tiledb_dimension_label_free(tiledb_dimension_label_t** handle);
int32_t tiledb_dimension_label_get_dimension_index(tiledb_ctx_t* ctx, const tiledb_dimension_label_t* label, uint32_t* index);
int32_t tiledb_dimension_label_get_label_attr_name(tiledb_ctx_t* ctx, const tiledb_dimension_label_t* label, const char** name);
int32_t tiledb_dimension_label_get_label_cell_val_num(tiledb_ctx_t* ctx, const tiledb_dimension_label_t* label, uint32_t* num);
int32_t tiledb_dimension_label_get_label_order(tiledb_ctx_t* ctx, const tiledb_dimension_label_t* label, int32_t* order);
int32_t tiledb_dimension_label_get_label_type(tiledb_ctx_t* ctx, const tiledb_dimension_label_t* label, int32_t* id);
int32_t tiledb_dimension_label_get_name(tiledb_ctx_t* ctx, const tiledb_dimension_label_t* label, const char** name);
int32_t tiledb_dimension_label_get_uri(tiledb_ctx_t* ctx, const tiledb_dimension_label_t* label, const char** uri);
int32_t tiledb_dimension_set_cell_val_num(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, uint32_t num);
int32_t tiledb_dimension_set_filter_list(tiledb_ctx_t* ctx, const tiledb_dimension_t* dim, const tiledb_filter_list_t* list);
int32_t tiledb_domain_add_dimension(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, const tiledb_dimension_t* dim);
int32_t tiledb_domain_alloc(tiledb_ctx_t* ctx, tiledb_domain_t** domain);
int32_t tiledb_domain_dump(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, void* out);
int32_t tiledb_domain_dump_str(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, tiledb_string_t** out);
void tiledb_domain_free(tiledb_domain_t** handle);
int32_t tiledb_domain_get_dimension_from_index(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, uint32_t index, tiledb_dimension_t** dim);
int32_t tiledb_domain_get_dimension_from_name(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, const char* name, tiledb_dimension_t** dim);
int32_t tiledb_domain_get_ndim(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, uint32_t* ndim);
int32_t tiledb_domain_get_type(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, int32_t* id);
int32_t tiledb_domain_has_dimension(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, const char* name, int32_t* has);
int32_t tiledb_encryption_type_from_str(const char* str, int32_t* id);
int32_t tiledb_encryption_type_to_str(int32_t id, const char** str);
int32_t tiledb_enumeration_alloc(tiledb_ctx_t* ctx, const char* name, int32_t id, uint32_t num, int32_t ordered, const void* data, uint64_t data_size, const void* offsets, uint64_t offsets_size, tiledb_enumeration_t** enumeration);
int32_t tiledb_enumeration_dump(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, void* out);
int32_t tiledb_enumeration_dump_str(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, tiledb_string_t** out);
int32_t tiledb_enumeration_extend(tiledb_ctx_t* ctx, const tiledb_enumeration_t* old, const void* data, uint64_t data_size, const void* offsets, uint64_t offsets_size, tiledb_enumeration_t** new_);
void tiledb_enumeration_free(tiledb_enumeration_t** handle);
int32_t tiledb_enumeration_get_cell_val_num(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, uint32_t* num);
int32_t tiledb_enumeration_get_data(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, const void** data, uint64_t* size);
int32_t tiledb_enumeration_get_name(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, tiledb_string_t** name);
int32_t tiledb_enumeration_get_offsets(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, const void** offsets, uint64_t* size);
int32_t tiledb_enumeration_get_ordered(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, int32_t* ordered);
int32_t tiledb_enumeration_get_type(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, int32_t* id);
int32_t tiledb_enumeration_get_value_index(tiledb_ctx_t* ctx, const tiledb_enumeration_t* enumeration, const void* value, uint64_t size, int32_t* exist, uint64_t* index);
void tiledb_error_free(tiledb_error_t** handle);
int32_t tiledb_error_message(const tiledb_error_t* err, const char** message);
int32_t tiledb_field_cell_val_num(tiledb_ctx_t* ctx, const tiledb_query_field_t* field, uint32_t* num);
int32_t tiledb_field_channel(tiledb_ctx_t* ctx, const tiledb_query_field_t* field, tiledb_query_channel_t** channel);
int32_t tiledb_field_datatype(tiledb_ctx_t* ctx, const tiledb_query_field_t* field, int32_t* id);
int32_t tiledb_field_get_nullable(tiledb_ctx_t* ctx, const tiledb_query_field_t* field, uint8_t* nullable);
int32_t tiledb_field_origin(tiledb_ctx_t* ctx, const tiledb_query_field_t* field, int32_t* origin);
int32_t tiledb_filestore_buffer_export(tiledb_ctx_t* ctx, const char* array_uri, size_t offset, void* buf, size_t size);
int32_t tiledb_filestore_buffer_import(tiledb_ctx_t* ctx, const char* array_uri, const void* buf, size_t size, int32_t mime_type);
int32_t tiledb_filestore_schema_create(tiledb_ctx_t* ctx, const char* uri, tiledb_array_schema_t** schema);
int32_t tiledb_filestore_size(tiledb_ctx_t* ctx, const char* array_uri, size_t* size);
int32_t tiledb_filestore_uri_export(tiledb_ctx_t* ctx, const char* file_uri, const char* array_uri);
int32_t tiledb_filestore_uri_import(tiledb_ctx_t* ctx, const char* array_uri, const char* file_uri, int32_t mime_type);
int32_t tiledb_filesystem_from_str(const char* str, int32_t* id);
int32_t tiledb_filesystem_to_str(int32_t id, const char** str);
int32_t tiledb_filter_alloc(tiledb_ctx_t* ctx, int32_t id, tiledb_filter_t** filter);
void tiledb_filter_free(tiledb_filter_t** handle);
int32_t tiledb_filter_get_option(tiledb_ctx_t* ctx, const tiledb_filter_t* filter, int32_t option, void* value);
int32_t tiledb_filter_get_type(tiledb_ctx_t* ctx, const tiledb_filter_t* filter, int32_t* id);
int32_t tiledb_filter_list_add_filter(tiledb_ctx_t* ctx, const tiledb_filter_list_t* list, const tiledb_filter_t* filter);
int32_t tiledb_filter_list_alloc(tiledb_ctx_t* ctx, tiledb_filter_list_t** list);
void tiledb_filter_list_free(tiledb_filter_list_t** handle);
int32_t tiledb_filter_list_get_filter_from_index(tiledb_ctx_t* ctx, const tiledb_filter_list_t* list, uint32_t index, tiledb_filter_t** filter);
int32_t tiledb_filter_list_get_max_chunk_size(tiledb_ctx_t* ctx, const tiledb_filter_list_t* list, uint32_t* size);
int32_t tiledb_filter_list_get_nfilters(tiledb_ctx_t* ctx, const tiledb_filter_list_t* list, uint32_t* num);
int32_t tiledb_filter_list_set_max_chunk_size(tiledb_ctx_t* ctx, const tiledb_filter_list_t* list, uint32_t size);
int32_t tiledb_filter_option_from_str(const char* str, int32_t* id);
int32_t tiledb_filter_option_to_str(int32_t id, const char** str);
int32_t tiledb_filter_set_option(tiledb_ctx_t* ctx, const tiledb_filter_t* filter, int32_t option, const void* value);
int32_t tiledb_filter_type_from_str(const char* str, int32_t* id);
int32_t tiledb_filter_type_to_str(int32_t id, const char** str);
int32_t tiledb_fragment_info_alloc(tiledb_ctx_t* ctx, const char* uri, tiledb_fragment_info_t** info);
int32_t tiledb_fragment_info_dump(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, void* out);
int32_t tiledb_fragment_info_dump_str(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, tiledb_string_t** out);
void tiledb_fragment_info_free(tiledb_fragment_info_t** handle);
int32_t tiledb_fragment_info_get_array_schema(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, tiledb_array_schema_t** schema);
int32_t tiledb_fragment_info_get_array_schema_name(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, const char** name);
int32_t tiledb_fragment_info_get_cell_num(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint64_t* num);
int32_t tiledb_fragment_info_get_config(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, tiledb_config_t** config);
int32_t tiledb_fragment_info_get_dense(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, int32_t* dense);
int32_t tiledb_fragment_info_get_fragment_name_v2(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, tiledb_string_t** name);
int32_t tiledb_fragment_info_get_fragment_num(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t* num);
int32_t tiledb_fragment_info_get_fragment_size(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint64_t* size);
int32_t tiledb_fragment_info_get_fragment_uri(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, const char** uri);
int32_t tiledb_fragment_info_get_mbr_from_index(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t mid, uint32_t did, void* out);
int32_t tiledb_fragment_info_get_mbr_from_name(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t mid, const char* name, void* out);
int32_t tiledb_fragment_info_get_mbr_num(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint64_t* num);
int32_t tiledb_fragment_info_get_mbr_var_from_index(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t mid, uint32_t did, void* start, void* end);
int32_t tiledb_fragment_info_get_mbr_var_from_name(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t mid, const char* name, void* start, void* end);
int32_t tiledb_fragment_info_get_mbr_var_size_from_index(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t mid, uint32_t did, uint64_t* start, uint64_t* end);
int32_t tiledb_fragment_info_get_mbr_var_size_from_name(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t mid, const char* name, uint64_t* start, uint64_t* end);
int32_t tiledb_fragment_info_get_non_empty_domain_from_index(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t did, void* out);
int32_t tiledb_fragment_info_get_non_empty_domain_from_name(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, const char* name, void* out);
int32_t tiledb_fragment_info_get_non_empty_domain_var_from_index(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t did, void* start, void* end);
int32_t tiledb_fragment_info_get_non_empty_domain_var_from_name(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, const char* name, void* start, void* end);
int32_t tiledb_fragment_info_get_non_empty_domain_var_size_from_index(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t did, uint64_t* start, uint64_t* end);
int32_t tiledb_fragment_info_get_non_empty_domain_var_size_from_name(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, const char* name, uint64_t* start, uint64_t* end);
int32_t tiledb_fragment_info_get_sparse(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, int32_t* sparse);
int32_t tiledb_fragment_info_get_timestamp_range(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint64_t* start, uint64_t* end);
int32_t tiledb_fragment_info_get_to_vacuum_num(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t* num);
int32_t tiledb_fragment_info_get_to_vacuum_uri(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, const char** uri);
int32_t tiledb_fragment_info_get_total_cell_num(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint64_t* num);
int32_t tiledb_fragment_info_get_unconsolidated_metadata_num(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t* num);
void tiledb_fragment_info_get_version(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, uint32_t* version);
int32_t tiledb_fragment_info_has_consolidated_metadata(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, uint32_t fid, int32_t* has);
int32_t tiledb_fragment_info_load(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info);
int32_t tiledb_fragment_info_set_config(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* info, const tiledb_config_t* config);
int32_t tiledb_group_add_member(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* uri, uint8_t relative, const char* name);
int32_t tiledb_group_add_member_with_type(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* uri, uint8_t relative, const char* name, int32_t id);
int32_t tiledb_group_alloc(tiledb_ctx_t* ctx, const char* uri, tiledb_group_t** group);
int32_t tiledb_group_close(tiledb_ctx_t* ctx, const tiledb_group_t* group);
int32_t tiledb_group_consolidate_metadata(tiledb_ctx_t* ctx, const char* uri, const tiledb_config_t* config);
int32_t tiledb_group_create(tiledb_ctx_t* ctx, const char* uri);
int32_t tiledb_group_delete_group(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* uri, uint8_t recursive);
int32_t tiledb_group_delete_metadata(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* key);
int32_t tiledb_group_dump_str(tiledb_ctx_t* ctx, const tiledb_group_t* group, char** out, uint8_t recursive);
int32_t tiledb_group_dump_str_v2(tiledb_ctx_t* ctx, const tiledb_group_t* group, tiledb_string_t** out, uint8_t recursive);
void tiledb_group_free(tiledb_group_t** handle);
int32_t tiledb_group_get_config(tiledb_ctx_t* ctx, const tiledb_group_t* group, tiledb_config_t** config);
int32_t tiledb_group_get_is_relative_uri_by_name(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* name, uint8_t* relative);
int32_t tiledb_group_get_member_by_index_v2(tiledb_ctx_t* ctx, const tiledb_group_t* group, uint64_t index, tiledb_string_t** uri, int32_t* id, tiledb_string_t** name);
int32_t tiledb_group_get_member_by_name_v2(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* name, tiledb_string_t** uri, int32_t* id);
int32_t tiledb_group_get_member_count(tiledb_ctx_t* ctx, const tiledb_group_t* group, uint64_t* count);
int32_t tiledb_group_get_metadata(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* key, int32_t* id, uint32_t* num, const void** value);
int32_t tiledb_group_get_metadata_from_index(tiledb_ctx_t* ctx, const tiledb_group_t* group, uint64_t index, const char** key, uint32_t* key_len, int32_t* id, uint32_t* num, const void** value);
int32_t tiledb_group_get_metadata_num(tiledb_ctx_t* ctx, const tiledb_group_t* group, uint64_t* num);
int32_t tiledb_group_get_query_type(tiledb_ctx_t* ctx, const tiledb_group_t* group, int32_t* kind);
int32_t tiledb_group_get_uri(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char** uri);
int32_t tiledb_group_has_metadata_key(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* key, int32_t* id, int32_t* has);
int32_t tiledb_group_is_open(tiledb_ctx_t* ctx, const tiledb_group_t* group, int32_t* is_open);
int32_t tiledb_group_open(tiledb_ctx_t* ctx, const tiledb_group_t* group, int32_t kind);
int32_t tiledb_group_put_metadata(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* key, int32_t id, uint32_t num, const void* value);
int32_t tiledb_group_remove_member(tiledb_ctx_t* ctx, const tiledb_group_t* group, const char* name);
int32_t tiledb_group_set_config(tiledb_ctx_t* ctx, const tiledb_group_t* group, const tiledb_config_t* config);
int32_t tiledb_group_vacuum_metadata(tiledb_ctx_t* ctx, const char* uri, const tiledb_config_t* config);
int32_t tiledb_handle_array_delete_fragments_list_request(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, const tiledb_buffer_t* request);
int32_t tiledb_handle_array_delete_fragments_timestamps_request(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, const tiledb_buffer_t* request);
int32_t tiledb_handle_consolidation_plan_request(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, const tiledb_buffer_t* request, const tiledb_buffer_t* response);
int32_t tiledb_handle_load_array_schema_request(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, const tiledb_buffer_t* request, const tiledb_buffer_t* response);
int32_t tiledb_handle_load_enumerations_request(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, const tiledb_buffer_t* request, const tiledb_buffer_t* response);
int32_t tiledb_handle_query_plan_request(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, const tiledb_buffer_t* request, const tiledb_buffer_t* response);
int32_t tiledb_heap_profiler_enable(const char* prefix, uint64_t interval, uint64_t bytes, uint64_t threshold);
int32_t tiledb_layout_from_str(const char* str, int32_t* id);
int32_t tiledb_layout_to_str(int32_t id, const char** str);
int32_t tiledb_log_warn(tiledb_ctx_t* ctx, const char* message);
uint32_t tiledb_max_path(void);
int32_t tiledb_mime_type_from_str(const char* str, int32_t* id);
int32_t tiledb_mime_type_to_str(int32_t id, const char** str);
int32_t tiledb_ndrectangle_alloc(tiledb_ctx_t* ctx, const tiledb_domain_t* domain, tiledb_ndrectangle_t** ndr);
int32_t tiledb_ndrectangle_dump_str(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, tiledb_string_t** out);
int32_t tiledb_ndrectangle_free(tiledb_ndrectangle_t** ndr);
int32_t tiledb_ndrectangle_get_dim_num(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, uint32_t* ndim);
int32_t tiledb_ndrectangle_get_dtype(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, uint32_t index, int32_t* id);
int32_t tiledb_ndrectangle_get_dtype_from_name(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, const char* name, int32_t* id);
int32_t tiledb_ndrectangle_get_range(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, uint32_t index, tiledb_range_t* range);
int32_t tiledb_ndrectangle_get_range_from_name(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, const char* name, tiledb_range_t* range);
int32_t tiledb_ndrectangle_set_range(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, uint32_t index, tiledb_range_t* range);
int32_t tiledb_ndrectangle_set_range_for_name(tiledb_ctx_t* ctx, const tiledb_ndrectangle_t* ndr, const char* name, tiledb_range_t* range);
int32_t tiledb_object_ls(tiledb_ctx_t* ctx, const char* path, tiledb_object_callback_t callback, void* data);
int32_t tiledb_object_move(tiledb_ctx_t* ctx, const char* old, const char* new_);
int32_t tiledb_object_remove(tiledb_ctx_t* ctx, const char* path);
int32_t tiledb_object_type(tiledb_ctx_t* ctx, const char* path, int32_t* id);
int32_t tiledb_object_type_from_str(const char* str, int32_t* id);
int32_t tiledb_object_type_to_str(int32_t id, const char** str);
int32_t tiledb_object_walk(tiledb_ctx_t* ctx, const char* path, int32_t order, tiledb_object_callback_t callback, void* data);
uint64_t tiledb_offset_size(void);
int32_t tiledb_profile_alloc(const char* name, const char* dir, tiledb_profile_t** profile, tiledb_error_t** error);
int32_t tiledb_profile_dump_str(const tiledb_profile_t* profile, tiledb_string_t** out, tiledb_error_t** error);
void tiledb_profile_free(tiledb_profile_t** handle);
int32_t tiledb_profile_get_dir(const tiledb_profile_t* profile, tiledb_string_t** dir, tiledb_error_t** error);
int32_t tiledb_profile_get_name(const tiledb_profile_t* profile, tiledb_string_t** name, tiledb_error_t** error);
int32_t tiledb_profile_get_param(const tiledb_profile_t* profile, const char* param, tiledb_string_t** value, tiledb_error_t** error);
int32_t tiledb_profile_load(const tiledb_profile_t* profile, tiledb_error_t** error);
int32_t tiledb_profile_remove(const char* name, const char* dir, tiledb_error_t** error);
int32_t tiledb_profile_save(const tiledb_profile_t* profile, uint8_t overwrite, tiledb_error_t** error);
int32_t tiledb_profile_set_param(const tiledb_profile_t* profile, const char* param, const char* value, tiledb_error_t** error);
int32_t tiledb_query_add_update_value(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, const void* value, uint64_t size);
int32_t tiledb_query_alloc(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, tiledb_query_t** query);
int32_t tiledb_query_channel_free(tiledb_ctx_t* ctx, tiledb_query_channel_t** channel);
int32_t tiledb_query_condition_alloc(tiledb_ctx_t* ctx, tiledb_query_condition_t** cond);
int32_t tiledb_query_condition_alloc_set_membership(tiledb_ctx_t* ctx, const char* name, const void* data, uint64_t data_size, const void* offsets, uint64_t offsets_size, int32_t op, tiledb_query_condition_t** cond);
int32_t tiledb_query_condition_combine(tiledb_ctx_t* ctx, const tiledb_query_condition_t* left, const tiledb_query_condition_t* right, int32_t op, tiledb_query_condition_t** out);
void tiledb_query_condition_free(tiledb_query_condition_t** handle);
int32_t tiledb_query_condition_init(tiledb_ctx_t* ctx, const tiledb_query_condition_t* cond, const char* name, const void* value, uint64_t size, int32_t op);
int32_t tiledb_query_condition_negate(tiledb_ctx_t* ctx, const tiledb_query_condition_t* cond, tiledb_query_condition_t** out);
int32_t tiledb_query_condition_set_use_enumeration(tiledb_ctx_t* ctx, const tiledb_query_condition_t* cond, int32_t use_enumeration);
int32_t tiledb_query_field_free(tiledb_ctx_t* ctx, tiledb_query_field_t** field);
int32_t tiledb_query_finalize(tiledb_ctx_t* ctx, const tiledb_query_t* query);
void tiledb_query_free(tiledb_query_t** handle);
int32_t tiledb_query_get_array(tiledb_ctx_t* ctx, const tiledb_query_t* query, tiledb_array_t** array);
int32_t tiledb_query_get_config(tiledb_ctx_t* ctx, const tiledb_query_t* query, tiledb_config_t** config);
int32_t tiledb_query_get_data_buffer(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, void** buffer, uint64_t** size);
int32_t tiledb_query_get_default_channel(tiledb_ctx_t* ctx, const tiledb_query_t* query, tiledb_query_channel_t** channel);
int32_t tiledb_query_get_est_result_size(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, uint64_t* size);
int32_t tiledb_query_get_est_result_size_nullable(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, uint64_t* size_val, uint64_t* size_validity);
int32_t tiledb_query_get_est_result_size_var(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, uint64_t* size_off, uint64_t* size_val);
int32_t tiledb_query_get_est_result_size_var_nullable(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, uint64_t* size_off, uint64_t* size_val, uint64_t* size_validity);
int32_t tiledb_query_get_field(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, tiledb_query_field_t** field);
int32_t tiledb_query_get_fragment_num(tiledb_ctx_t* ctx, const tiledb_query_t* query, uint32_t* num);
int32_t tiledb_query_get_fragment_timestamp_range(tiledb_ctx_t* ctx, const tiledb_query_t* query, uint64_t index, uint64_t* t1, uint64_t* t2);
int32_t tiledb_query_get_fragment_uri(tiledb_ctx_t* ctx, const tiledb_query_t* query, uint64_t index, const char** uri);
int32_t tiledb_query_get_layout(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t* order);
int32_t tiledb_query_get_offsets_buffer(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, void** buffer, uint64_t** size);
int32_t tiledb_query_get_plan(tiledb_ctx_t* ctx, const tiledb_query_t* query, tiledb_string_t** plan);
int32_t tiledb_query_get_relevant_fragment_num(tiledb_ctx_t* ctx, const tiledb_query_t* query, uint64_t* num);
int32_t tiledb_query_get_stats(tiledb_ctx_t* ctx, const tiledb_query_t* query, char** out);
int32_t tiledb_query_get_status(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t* status);
int32_t tiledb_query_get_status_details(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t* details);
int32_t tiledb_query_get_subarray_t(tiledb_ctx_t* ctx, const tiledb_query_t* query, tiledb_subarray_t** subarray);
int32_t tiledb_query_get_type(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t* kind);
int32_t tiledb_query_get_validity_buffer(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, void** buffer, uint64_t** size);
int32_t tiledb_query_has_results(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t* has);
int32_t tiledb_query_set_condition(tiledb_ctx_t* ctx, const tiledb_query_t* query, const tiledb_query_condition_t* cond);
int32_t tiledb_query_set_config(tiledb_ctx_t* ctx, const tiledb_query_t* query, const tiledb_config_t* config);
int32_t tiledb_query_set_data_buffer(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, void* buffer, uint64_t* size);
int32_t tiledb_query_set_layout(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t id);
int32_t tiledb_query_set_offsets_buffer(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, void* buffer, uint64_t* size);
int32_t tiledb_query_set_subarray_t(tiledb_ctx_t* ctx, const tiledb_query_t* query, const tiledb_subarray_t* subarray);
int32_t tiledb_query_set_validity_buffer(tiledb_ctx_t* ctx, const tiledb_query_t* query, const char* name, void* buffer, uint64_t* size);
int32_t tiledb_query_status_from_str(const char* str, int32_t* id);
int32_t tiledb_query_status_to_str(int32_t id, const char** str);
int32_t tiledb_query_submit(tiledb_ctx_t* ctx, const tiledb_query_t* query);
int32_t tiledb_query_submit_and_finalize(tiledb_ctx_t* ctx, const tiledb_query_t* query);
int32_t tiledb_query_type_from_str(const char* str, int32_t* id);
int32_t tiledb_query_type_to_str(int32_t id, const char** str);
int32_t tiledb_serialization_type_from_str(const char* str, int32_t* id);
int32_t tiledb_serialization_type_to_str(int32_t id, const char** str);
int32_t tiledb_serialize_array(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_array_max_buffer_sizes(tiledb_ctx_t* ctx, const tiledb_array_t* array, void* subarray, int32_t kind, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_array_metadata(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_array_non_empty_domain_all_dimensions(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_array_nonempty_domain(tiledb_ctx_t* ctx, const tiledb_array_t* array, const void* nonempty_domain, int32_t is_empty, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_array_open(tiledb_ctx_t* ctx, const tiledb_array_t* array, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_array_schema(tiledb_ctx_t* ctx, const tiledb_array_schema_t* array_schema, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_array_schema_evolution(tiledb_ctx_t* ctx, const tiledb_array_schema_evolution_t* array_schema_evolution, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_config(tiledb_ctx_t* ctx, const tiledb_config_t* config, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_fragment_info(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* fragment_info, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_fragment_info_request(tiledb_ctx_t* ctx, const tiledb_fragment_info_t* fragment_info, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_group(tiledb_ctx_t* ctx, const tiledb_group_t* group, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_group_metadata(tiledb_ctx_t* ctx, const tiledb_group_t* group, int32_t kind, tiledb_buffer_t** buffer);
int32_t tiledb_serialize_query(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t kind, int32_t client_side, tiledb_buffer_list_t** buffer_list);
int32_t tiledb_serialize_query_est_result_sizes(tiledb_ctx_t* ctx, const tiledb_query_t* query, int32_t kind, int32_t client_side, tiledb_buffer_t** buffer);
int32_t tiledb_stats_disable(void);
int32_t tiledb_stats_dump(void* out);
int32_t tiledb_stats_dump_str(char** out);
int32_t tiledb_stats_enable(void);
int32_t tiledb_stats_free_str(char** out);
int32_t tiledb_stats_is_enabled(uint8_t* enabled);
int32_t tiledb_stats_raw_dump(void* out);
int32_t tiledb_stats_raw_dump_str(char** out);
int32_t tiledb_stats_reset(void);
int32_t tiledb_status_code(int32_t status);
int32_t tiledb_string_free(tiledb_string_t** s);
int32_t tiledb_string_view(const tiledb_string_t* s, const char** data, size_t* length);
int32_t tiledb_subarray_add_label_range(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, const void* start, const void* end, const void* stride);
int32_t tiledb_subarray_add_label_range_var(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, const void* start, uint64_t start_size, const void* end, uint64_t end_size);
int32_t tiledb_subarray_add_point_ranges(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, const void* start, uint64_t count);
int32_t tiledb_subarray_add_point_ranges_var(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, const void* start, uint64_t start_size, const void* offsets, uint64_t offsets_num);
int32_t tiledb_subarray_add_range(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, const void* start, const void* end, const void* stride);
int32_t tiledb_subarray_add_range_by_name(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, const void* start, const void* end, const void* stride);
int32_t tiledb_subarray_add_range_var(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, const void* start, uint64_t start_size, const void* end, uint64_t end_size);
int32_t tiledb_subarray_add_range_var_by_name(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, const void* start, uint64_t start_size, const void* end, uint64_t end_size);
int32_t tiledb_subarray_alloc(tiledb_ctx_t* ctx, const tiledb_array_t* array, tiledb_subarray_t** subarray);
void tiledb_subarray_free(tiledb_subarray_t** handle);
int32_t tiledb_subarray_get_label_name(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, const char** name);
int32_t tiledb_subarray_get_label_range(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t at, const void** start, const void** end, const void** stride);
int32_t tiledb_subarray_get_label_range_num(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t* num);
int32_t tiledb_subarray_get_label_range_var(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t at, void* start, void* end);
int32_t tiledb_subarray_get_label_range_var_size(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t at, uint64_t* start_size, uint64_t* end_size);
int32_t tiledb_subarray_get_range(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, uint64_t at, const void** start, const void** end, const void** stride);
int32_t tiledb_subarray_get_range_from_name(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t at, const void** start, const void** end, const void** stride);
int32_t tiledb_subarray_get_range_num(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, uint64_t* num);
int32_t tiledb_subarray_get_range_num_from_name(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t* num);
int32_t tiledb_subarray_get_range_var(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, uint64_t at, void* start, void* end);
int32_t tiledb_subarray_get_range_var_from_name(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t at, void* start, void* end);
int32_t tiledb_subarray_get_range_var_size(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, uint64_t at, uint64_t* start_size, uint64_t* end_size);
int32_t tiledb_subarray_get_range_var_size_from_name(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const char* name, uint64_t at, uint64_t* start_size, uint64_t* end_size);
int32_t tiledb_subarray_has_label_ranges(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, uint32_t index, int32_t* has);
int32_t tiledb_subarray_set_coalesce_ranges(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, int32_t coalesce);
int32_t tiledb_subarray_set_config(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const tiledb_config_t* config);
int32_t tiledb_subarray_set_subarray(tiledb_ctx_t* ctx, const tiledb_subarray_t* subarray, const void* values);
uint64_t tiledb_timestamp_now_ms(void);
const char* tiledb_timestamps(void);
int32_t tiledb_uri_to_path(tiledb_ctx_t* ctx, const char* uri, void* path_out, uint32_t* path_length);
uint32_t tiledb_var_num(void);
void tiledb_version(int32_t* major, int32_t* minor, int32_t* rev);
int32_t tiledb_vfs_alloc(tiledb_ctx_t* ctx, const tiledb_config_t* config, tiledb_vfs_t** vfs);
int32_t tiledb_vfs_close(tiledb_ctx_t* ctx, const tiledb_vfs_fh_t* fh);
int32_t tiledb_vfs_copy_dir(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* old, const char* new_);
int32_t tiledb_vfs_copy_file(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* old, const char* new_);
int32_t tiledb_vfs_create_bucket(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri);
int32_t tiledb_vfs_create_dir(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri);
int32_t tiledb_vfs_dir_size(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri, uint64_t* size);
int32_t tiledb_vfs_empty_bucket(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri);
void tiledb_vfs_fh_free(tiledb_vfs_fh_t** handle);
int32_t tiledb_vfs_fh_is_closed(tiledb_ctx_t* ctx, const tiledb_vfs_fh_t* fh, int32_t* is_closed);
int32_t tiledb_vfs_file_size(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri, uint64_t* size);
void tiledb_vfs_free(tiledb_vfs_t** handle);
int32_t tiledb_vfs_get_config(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, tiledb_config_t** config);
int32_t tiledb_vfs_is_bucket(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri, int32_t* is_bucket);
int32_t tiledb_vfs_is_dir(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri, int32_t* is_dir);
int32_t tiledb_vfs_is_empty_bucket(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri, int32_t* is_empty);
int32_t tiledb_vfs_is_file(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri, int32_t* is_file);
int32_t tiledb_vfs_ls(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* path, tiledb_vfs_ls_callback_t callback, void* data);
int32_t tiledb_vfs_ls_recursive(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* path, tiledb_ls_callback_t callback, void* data);
int32_t tiledb_vfs_ls_recursive_v2(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* path, tiledb_ls_callback_v2_t callback, void* data);
int32_t tiledb_vfs_mode_from_str(const char* str, int32_t* id);
int32_t tiledb_vfs_mode_to_str(int32_t id, const char** str);
int32_t tiledb_vfs_move_dir(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* old, const char* new_);
int32_t tiledb_vfs_move_file(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* old, const char* new_);
int32_t tiledb_vfs_open(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri, int32_t mode, tiledb_vfs_fh_t** fh);
int32_t tiledb_vfs_read(tiledb_ctx_t* ctx, const tiledb_vfs_fh_t* fh, uint64_t offset, void* buffer, uint64_t nbytes);
int32_t tiledb_vfs_remove_bucket(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri);
int32_t tiledb_vfs_remove_dir(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri);
int32_t tiledb_vfs_remove_file(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri);
int32_t tiledb_vfs_sync(tiledb_ctx_t* ctx, const tiledb_vfs_fh_t* fh);
int32_t tiledb_vfs_touch(tiledb_ctx_t* ctx, const tiledb_vfs_t* vfs, const char* uri);
int32_t tiledb_vfs_write(tiledb_ctx_t* ctx, const tiledb_vfs_fh_t* fh, const void* buffer, uint64_t nbytes);
int32_t tiledb_walk_order_from_str(const char* str, int32_t* id);
int32_t tiledb_walk_order_to_str(int32_t id, const char** str);

#ifdef __cplusplus
}
#endif

#endif
