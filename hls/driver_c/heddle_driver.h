/* Driver of the Heddle accelerator. C99 without an operating system: memory, registers and caches are reached through the
 * functions of a heddle_device, so that the same code runs bare metal, under Linux (heddle_uio.h) and in a simulation.
 *
 * Order of calls:
 *   heddle_open(&device, &program)             the hardware is there and is the one the program was compiled for
 *   heddle_load(&device, &program, NULL)       once: program and weights into memory, resident weights on chip
 *   heddle_set_input(…), heddle_run(…), heddle_get_output(…)   for each inference
 *
 * Tensors are int8 in row-major order of their logical shape; the driver packs and unpacks the accelerator's layout. Nothing
 * else crosses the border: the data are bytes, so the host's byte order does not matter to them. Registers are 32-bit
 * values; heddle_mmio_read and _write below convert from and to the bus's little-endian order.
 */
#ifndef HEDDLE_DRIVER_H
#define HEDDLE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "heddle_registers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum heddle_status {
  HEDDLE_OK = 0,
  HEDDLE_ERROR_ARGUMENT = 1,       /* a null pointer, an index out of range, a missing function */
  HEDDLE_ERROR_NO_DEVICE = 2,      /* the id register does not answer as an accelerator of this kind */
  HEDDLE_ERROR_WRONG_HARDWARE = 3, /* lanes or bus width are not those of the program */
  HEDDLE_ERROR_MEMORY = 4,         /* the memory is too small, or its bus address is not a multiple of 4096 */
  HEDDLE_ERROR_BUSY = 5,           /* a program is running */
  HEDDLE_ERROR_TIMEOUT = 6,        /* not done in time; heddle_counters.waiting says which unit waits */
  HEDDLE_ERROR_BUS = 7,            /* the accelerator met a bus error or an unknown instruction */
  HEDDLE_ERROR_SYSTEM = 8          /* the operating system refused; heddle_uio.h */
} heddle_status;

/* One factor of a tensor's row-major order, outermost first: element i lies at address + sum of digit * stride. */
typedef struct heddle_axis {
  uint32_t extent;
  int32_t stride_bytes;
} heddle_axis;

typedef struct heddle_tensor {
  const char *name;
  uint32_t elements;
  uint32_t dram_address; /* bytes from the base */
  uint32_t dram_bytes;   /* what it occupies there, gaps included */
  uint32_t axis_count;
  const heddle_axis *axes;
} heddle_tensor;

/* A compiled region; region_NNN.c defines one. */
typedef struct heddle_program {
  const char *name;
  uint32_t lanes;          /* what the `lanes` register must read */
  uint32_t setup_address;  /* program that loads what stays on chip, bytes from the base */
  uint32_t run_address;    /* program of one inference */
  const uint8_t *image;    /* programs, weights, constants; NULL where they are in weights.bin alone */
  uint32_t image_bytes;
  uint32_t dram_bytes;     /* memory that the program needs, the image included */
  uint32_t cycles_estimated; /* of one inference */
  uint32_t clock_khz;
  uint32_t input_count;
  const heddle_tensor *inputs;
  uint32_t output_count;
  const heddle_tensor *outputs;
} heddle_program;

/* The accelerator and its memory as this system reaches them. Functions that may be NULL say so. */
typedef struct heddle_device {
  void *context; /* handed to every function */
  uint32_t (*read_register)(void *context, uint32_t offset);
  void (*write_register)(void *context, uint32_t offset, uint32_t value);
  uint8_t *memory;           /* the processor's address of the accelerator's memory */
  uint64_t memory_bus_address; /* the same memory as the accelerator's bus master sees it; a multiple of 4096 */
  size_t memory_bytes;
  /* Caches; NULL where the memory is not cached or is coherent. flush: what the processor wrote goes to memory.
   * invalidate: the processor's next reads come from memory. */
  void (*flush)(void *context, const void *address, size_t bytes);
  void (*invalidate)(void *context, void *address, size_t bytes);
  /* Sleeps until the interrupt or for at most timeout_us; NULL: the status register is polled. Non-zero: a system error. */
  int (*wait_interrupt)(void *context, uint32_t timeout_us);
  /* A clock in microseconds; NULL: time is counted in polls of the status register, and a timeout is a number of polls. */
  uint64_t (*now_us)(void *context);
} heddle_device;

/* Counters of the last program. */
typedef struct heddle_counters {
  uint64_t cycles;
  uint32_t status;
  uint32_t waiting; /* see the register `waiting` */
  uint32_t values[HEDDLE_COUNTER_COUNT]; /* in the order of HEDDLE_COUNTER_OFFSETS */
} heddle_counters;

heddle_status heddle_open(const heddle_device *device, const heddle_program *program);
/* Copies the image (`image`, or the program's own where NULL), clears the rest, runs the set-up program. */
heddle_status heddle_load(const heddle_device *device, const heddle_program *program, const uint8_t *image, uint32_t timeout_us);
/* `data`: the input's elements. */
heddle_status heddle_set_input(const heddle_device *device, const heddle_program *program, uint32_t index, const int8_t *data);
/* One inference. */
heddle_status heddle_run(const heddle_device *device, const heddle_program *program, uint32_t timeout_us);
heddle_status heddle_get_output(const heddle_device *device, const heddle_program *program, uint32_t index, int8_t *data);
heddle_status heddle_read_counters(const heddle_device *device, heddle_counters *counters);
/* English words for a status; never NULL. */
const char *heddle_status_text(heddle_status status);

/* Registers at a fixed address: `context` of these two is the address of the first register. */
uint32_t heddle_mmio_read(void *context, uint32_t offset);
void heddle_mmio_write(void *context, uint32_t offset, uint32_t value);

#ifdef __cplusplus
}
#endif

#endif
