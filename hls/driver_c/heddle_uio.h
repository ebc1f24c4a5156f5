/* The accelerator under Linux: registers and interrupt through a UIO device, memory through u-dma-buf or a reserved region. */
#ifndef HEDDLE_UIO_H
#define HEDDLE_UIO_H

#include "heddle_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_uio {
  int register_file, memory_file;
  void *registers;
  size_t register_bytes;
} heddle_uio;

/* Opens `uio_path` ("/dev/uio0": its first map is the registers, its interrupt `irq`) and `memory_path` ("/dev/udmabuf0", or
 * "/dev/mem" for a region that the kernel was told to leave alone) and fills `device`. `bus_address` is the memory's
 * address on the accelerator's bus: for u-dma-buf the content of /sys/class/u-dma-buf/udmabuf0/phys_addr. With /dev/mem it is
 * also the offset that is mapped. O_SYNC is set, so that the memory is not cached and no cache functions are needed.
 * HEDDLE_ERROR_SYSTEM: errno says why. */
heddle_status heddle_uio_open(heddle_uio *uio, heddle_device *device, const char *uio_path, const char *memory_path, uint64_t bus_address,
                              size_t memory_bytes);
void heddle_uio_close(heddle_uio *uio, heddle_device *device);

#ifdef __cplusplus
}
#endif

#endif
