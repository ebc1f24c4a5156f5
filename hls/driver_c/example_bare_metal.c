/* One inference without an operating system. Set the two addresses to those of your design: the accelerator's registers, and
 * memory that nothing else uses. Where the memory is cached, fill in flush and invalidate with your processor's functions
 * (Xil_DCacheFlushRange and Xil_DCacheInvalidateRange on a Zynq). */
#include "REGION_NAME.h"

#define REGISTERS_ADDRESS 0x43C00000u
#define MEMORY_ADDRESS 0x10000000u

static int8_t input[HEDDLE_REGION_UPPER_INPUT_0_ELEMENTS];
static int8_t output[HEDDLE_REGION_UPPER_OUTPUT_0_ELEMENTS];

int main(void) {
  heddle_device device = {0};
  heddle_status status;
  device.context = (void *)(uintptr_t)REGISTERS_ADDRESS;
  device.read_register = heddle_mmio_read;
  device.write_register = heddle_mmio_write;
  device.memory = (uint8_t *)(uintptr_t)MEMORY_ADDRESS;
  device.memory_bus_address = MEMORY_ADDRESS;
  device.memory_bytes = HEDDLE_REGION_UPPER_DRAM_BYTES;
  /* No clock is given: timeouts are numbers of polls. */
  status = heddle_load(&device, &heddle_REGION_NAME, NULL, 100000000u);
  if (status == HEDDLE_OK) status = heddle_set_input(&device, &heddle_REGION_NAME, 0, input);
  if (status == HEDDLE_OK) status = heddle_run(&device, &heddle_REGION_NAME, 100000000u);
  if (status == HEDDLE_OK) status = heddle_get_output(&device, &heddle_REGION_NAME, 0, output);
  return (int)status;
}
