//! What is out of scope: exported, so that programs load, with outputs set and an error that says
//! so when called.

use crate::array::ArrayHandle;
use crate::boundary::{In, Opaque, Out, Ptr, Text, capi};
use crate::buffer::Buffer;
use crate::buffer::BufferList;
use crate::config::Config;
use crate::error::Failure;
use crate::evolution::EvolutionHandle;
use crate::fragment_info::InfoHandle;
use crate::group::GroupHandle;
use crate::query::QueryHandle;
use crate::schema::SchemaHandle;
use crate::strings::StringHandle;

capi! {
    /// Not supported.
    fn tiledb_deserialize_array(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array_uri: Text, array: Out<Ptr<ArrayHandle>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_array_create(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32,
        storage_uri: Out<Ptr<StringHandle>>, array_schema: Out<Ptr<SchemaHandle>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array_create"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_array_metadata(ctx, array: In<ArrayHandle>, kind: i32, buffer: In<Buffer>) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array_metadata"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_array_non_empty_domain_all_dimensions(
        ctx, array: In<ArrayHandle>, buffer: In<Buffer>, kind: i32, client_side: i32
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array_non_empty_domain_all_dimensions"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_array_nonempty_domain(
        ctx, array: In<ArrayHandle>, buffer: In<Buffer>, kind: i32,
        client_side: i32, nonempty_domain: Opaque, is_empty: Out<i32>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array_nonempty_domain"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_array_open(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array: Out<Ptr<ArrayHandle>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array_open"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_array_schema(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array_schema: Out<Ptr<SchemaHandle>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array_schema"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_array_schema_evolution(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, array_schema_evolution: Out<Ptr<EvolutionHandle>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_array_schema_evolution"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_config(ctx, buffer: In<Buffer>, kind: i32, client_side: i32, config: Out<Ptr<Config>>) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_config"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_fragment_info(
        ctx, buffer: In<Buffer>, kind: i32, array_uri: Text, client_side: i32, fragment_info: In<InfoHandle>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_fragment_info"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_fragment_info_request(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32, fragment_info: In<InfoHandle>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_fragment_info_request"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_group(ctx, buffer: In<Buffer>, kind: i32, client_side: i32, group: In<GroupHandle>) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_group"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_group_metadata(ctx, group: In<GroupHandle>, kind: i32, buffer: In<Buffer>) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_group_metadata"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_query(ctx, buffer: In<Buffer>, kind: i32, client_side: i32, query: In<QueryHandle>) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_query"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_query_and_array(
        ctx, buffer: In<Buffer>, kind: i32, client_side: i32,
        array_uri: Text, query: Out<Ptr<QueryHandle>>, array: Out<Ptr<ArrayHandle>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_query_and_array"))?;
    }

    /// Not supported.
    fn tiledb_deserialize_query_est_result_sizes(
        ctx, query: In<QueryHandle>, kind: i32, client_side: i32, buffer: In<Buffer>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_deserialize_query_est_result_sizes"))?;
    }

    /// Not supported.
    fn tiledb_handle_array_delete_fragments_list_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_handle_array_delete_fragments_list_request"))?;
    }

    /// Not supported.
    fn tiledb_handle_array_delete_fragments_timestamps_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_handle_array_delete_fragments_timestamps_request"))?;
    }

    /// Not supported.
    fn tiledb_handle_consolidation_plan_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_handle_consolidation_plan_request"))?;
    }

    /// Not supported.
    fn tiledb_handle_load_array_schema_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_handle_load_array_schema_request"))?;
    }

    /// Not supported.
    fn tiledb_handle_load_enumerations_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_handle_load_enumerations_request"))?;
    }

    /// Not supported.
    fn tiledb_handle_query_plan_request(
        ctx, array: In<ArrayHandle>, kind: i32, request: In<Buffer>, response: In<Buffer>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_handle_query_plan_request"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array(ctx, array: In<ArrayHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array_max_buffer_sizes(
        ctx, array: In<ArrayHandle>, subarray: Opaque, kind: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array_max_buffer_sizes"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array_metadata(ctx, array: In<ArrayHandle>, kind: i32, buffer: Out<Ptr<Buffer>>) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array_metadata"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array_non_empty_domain_all_dimensions(
        ctx, array: In<ArrayHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array_non_empty_domain_all_dimensions"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array_nonempty_domain(
        ctx, array: In<ArrayHandle>, nonempty_domain: Opaque, is_empty: i32,
        kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array_nonempty_domain"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array_open(
        ctx, array: In<ArrayHandle>, kind: i32, client_side: i32, buffer_list: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array_open"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array_schema(
        ctx, array_schema: In<SchemaHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array_schema"))?;
    }

    /// Not supported.
    fn tiledb_serialize_array_schema_evolution(
        ctx, array_schema_evolution: In<EvolutionHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_array_schema_evolution"))?;
    }

    /// Not supported.
    fn tiledb_serialize_config(ctx, config: In<Config>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_config"))?;
    }

    /// Not supported.
    fn tiledb_serialize_fragment_info(
        ctx, fragment_info: In<InfoHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_fragment_info"))?;
    }

    /// Not supported.
    fn tiledb_serialize_fragment_info_request(
        ctx, fragment_info: In<InfoHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_fragment_info_request"))?;
    }

    /// Not supported.
    fn tiledb_serialize_group(
        ctx, group: In<GroupHandle>, kind: i32, client_side: i32, buffer_list: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_group"))?;
    }

    /// Not supported.
    fn tiledb_serialize_group_metadata(ctx, group: In<GroupHandle>, kind: i32, buffer: Out<Ptr<Buffer>>) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_group_metadata"))?;
    }

    /// Not supported.
    fn tiledb_serialize_query(
        ctx, query: In<QueryHandle>, kind: i32, client_side: i32, buffer_list: Out<Ptr<BufferList>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_query"))?;
    }

    /// Not supported.
    fn tiledb_serialize_query_est_result_sizes(
        ctx, query: In<QueryHandle>, kind: i32, client_side: i32, buffer: Out<Ptr<Buffer>>
    ) {
        Err::<(), _>(Failure::unsupported("tiledb_serialize_query_est_result_sizes"))?;
    }
}
