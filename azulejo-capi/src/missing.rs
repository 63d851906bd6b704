//! What is not there yet, or out of scope: exported, so that programs load, and an error that says so when called.

use crate::boundary::{In, with_context};
use crate::ctx::Context;
use crate::error::Failure;

/// Functions whose first argument is the context, and that do nothing but say that they are not supported.
macro_rules! missing {
    ($($name:ident),* $(,)?) => {$(
        /// Not supported.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(ctx: In<Context>) -> i32 {
            with_context(&ctx, |_| Err(Failure::unsupported(stringify!($name))))
        }
    )*};
}

missing! {
    tiledb_deserialize_array,
    tiledb_deserialize_array_create,
    tiledb_deserialize_array_metadata,
    tiledb_deserialize_array_non_empty_domain_all_dimensions,
    tiledb_deserialize_array_nonempty_domain,
    tiledb_deserialize_array_open,
    tiledb_deserialize_array_schema,
    tiledb_deserialize_array_schema_evolution,
    tiledb_deserialize_config,
    tiledb_deserialize_fragment_info,
    tiledb_deserialize_fragment_info_request,
    tiledb_deserialize_group,
    tiledb_deserialize_group_metadata,
    tiledb_deserialize_query,
    tiledb_deserialize_query_and_array,
    tiledb_deserialize_query_est_result_sizes,
    tiledb_handle_array_delete_fragments_list_request,
    tiledb_handle_array_delete_fragments_timestamps_request,
    tiledb_handle_consolidation_plan_request,
    tiledb_handle_load_array_schema_request,
    tiledb_handle_load_enumerations_request,
    tiledb_handle_query_plan_request,
    tiledb_serialize_array,
    tiledb_serialize_array_max_buffer_sizes,
    tiledb_serialize_array_metadata,
    tiledb_serialize_array_non_empty_domain_all_dimensions,
    tiledb_serialize_array_nonempty_domain,
    tiledb_serialize_array_open,
    tiledb_serialize_array_schema,
    tiledb_serialize_array_schema_evolution,
    tiledb_serialize_config,
    tiledb_serialize_fragment_info,
    tiledb_serialize_fragment_info_request,
    tiledb_serialize_group,
    tiledb_serialize_group_metadata,
    tiledb_serialize_query,
    tiledb_serialize_query_est_result_sizes,
}
