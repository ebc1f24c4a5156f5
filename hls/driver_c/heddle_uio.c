/* See heddle_uio.h. */
#define _POSIX_C_SOURCE 200809L

#include "heddle_uio.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HEDDLE_UIO_REGISTER_BYTES 4096u

static uint32_t uio_read(void *context, uint32_t offset) { return heddle_mmio_read(((heddle_uio *)context)->registers, offset); }

static void uio_write(void *context, uint32_t offset, uint32_t value) { heddle_mmio_write(((heddle_uio *)context)->registers, offset, value); }

/* UIO masks the interrupt when it has come; writing 1 unmasks it. */
static int uio_wait(void *context, uint32_t timeout_us) {
  const heddle_uio *uio = (const heddle_uio *)context;
  const uint32_t unmask = 1;
  uint32_t count;
  struct pollfd waiting;
  if (write(uio->register_file, &unmask, sizeof unmask) != (ssize_t)sizeof unmask) return -1;
  waiting.fd = uio->register_file;
  waiting.events = POLLIN;
  waiting.revents = 0;
  switch (poll(&waiting, 1, (int)(timeout_us / 1000u + 1u))) {
    case 0: return 0; /* the caller looks at the clock */
    case 1: return read(uio->register_file, &count, sizeof count) == (ssize_t)sizeof count ? 0 : -1;
    default: return -1;
  }
}

static uint64_t uio_now(void *context) {
  struct timespec now;
  (void)context;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

heddle_status heddle_uio_open(heddle_uio *uio, heddle_device *device, const char *uio_path, const char *memory_path, uint64_t bus_address,
                              size_t memory_bytes) {
  const off_t offset = strcmp(memory_path, "/dev/mem") == 0 ? (off_t)bus_address : 0;
  memset(device, 0, sizeof *device);
  uio->registers = MAP_FAILED;
  uio->register_bytes = HEDDLE_UIO_REGISTER_BYTES;
  uio->memory_file = -1;
  uio->register_file = open(uio_path, O_RDWR);
  if (uio->register_file >= 0) uio->memory_file = open(memory_path, O_RDWR | O_SYNC);
  if (uio->memory_file >= 0) {
    uio->registers = mmap(NULL, uio->register_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, uio->register_file, 0);
  }
  if (uio->registers != MAP_FAILED) {
    void *memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, uio->memory_file, offset);
    if (memory != MAP_FAILED) device->memory = (uint8_t *)memory;
  }
  if (device->memory == NULL) {
    heddle_uio_close(uio, device);
    return HEDDLE_ERROR_SYSTEM;
  }
  device->context = uio;
  device->read_register = uio_read;
  device->write_register = uio_write;
  device->memory_bus_address = bus_address;
  device->memory_bytes = memory_bytes;
  device->wait_interrupt = uio_wait;
  device->now_us = uio_now;
  return HEDDLE_OK;
}

void heddle_uio_close(heddle_uio *uio, heddle_device *device) {
  if (device->memory != NULL) munmap(device->memory, device->memory_bytes);
  if (uio->registers != MAP_FAILED) munmap(uio->registers, uio->register_bytes);
  if (uio->memory_file >= 0) close(uio->memory_file);
  if (uio->register_file >= 0) close(uio->register_file);
  device->memory = NULL;
  uio->registers = MAP_FAILED;
  uio->memory_file = uio->register_file = -1;
}
