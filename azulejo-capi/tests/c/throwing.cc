// Callbacks that throw: an error with the exception's message, for exceptions of the standard library and others.
#include "azulejo_tiledb.h"
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

struct Trouble : std::runtime_error {
  using std::runtime_error::runtime_error;
  const char* what() const noexcept override { return "trouble with a file"; }
};

// As the public headers of libtiledb declare functions: an exception that came out of one would end the program.
static int32_t list(tiledb_ctx_t* ctx, tiledb_vfs_t* vfs, const char* path, int how) noexcept {
  tiledb_ls_callback_t callback = [](const char*, size_t, uint64_t, void* data) -> int32_t {
    std::string local = "is destroyed on the way";
    switch (*static_cast<int*>(data)) {
      case 1: throw Trouble("hidden");
      case 2: throw 7;
      case 3: return -1;
      default: return 1;
    }
  };
  return tiledb_vfs_ls_recursive(ctx, vfs, path, callback, &how);
}

int main(int argc, char** argv) {
  tiledb_ctx_t* ctx = nullptr;
  tiledb_vfs_t* vfs = nullptr;
  if (argc != 2 || tiledb_ctx_alloc(nullptr, &ctx) || tiledb_vfs_alloc(ctx, nullptr, &vfs)) return 1;
  if (tiledb_vfs_create_dir(ctx, vfs, argv[1])) return 2;
  if (tiledb_vfs_touch(ctx, vfs, (std::string(argv[1]) + "/file").c_str())) return 3;
  const char* messages[] = {nullptr, "trouble with a file", "an exception that is no std::exception", "the callback failed"};
  for (int round = 0; round < 3; round++) {
    for (int how = 0; how < 4; how++) {
      int32_t status = list(ctx, vfs, argv[1], how);
      if (status != (how ? TILEDB_ERR : TILEDB_OK)) return 10 + how;
      if (!how) continue;
      tiledb_error_t* error = nullptr;
      const char* message = "";
      if (tiledb_ctx_get_last_error(ctx, &error) || !error || tiledb_error_message(error, &message)) return 20;
      bool same = !std::strcmp(message, messages[how]);
      if (!same) std::fprintf(stderr, "%d: %s\n", how, message);
      tiledb_error_free(&error);
      if (!same) return 30 + how;
    }
  }
  tiledb_vfs_free(&vfs);
  tiledb_ctx_free(&ctx);
  std::puts("caught");
  return 0;
}
