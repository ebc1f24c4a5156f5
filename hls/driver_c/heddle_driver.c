/* See heddle_driver.h. No allocation, no library beyond <string.h>. */
#include "heddle_driver.h"

#include <string.h>

const char *heddle_status_text(heddle_status status) {
  switch (status) {
    case HEDDLE_OK: return "no error";
    case HEDDLE_ERROR_ARGUMENT: return "an argument is missing or out of range";
    case HEDDLE_ERROR_NO_DEVICE: return "no accelerator answers at this address";
    case HEDDLE_ERROR_WRONG_HARDWARE: return "the accelerator is not the one that the program was compiled for";
    case HEDDLE_ERROR_MEMORY: return "the accelerator's memory is too small or badly aligned";
    case HEDDLE_ERROR_BUSY: return "a program is running";
    case HEDDLE_ERROR_TIMEOUT: return "the program did not end in time";
    case HEDDLE_ERROR_BUS: return "the accelerator met a bus error or an unknown instruction";
    case HEDDLE_ERROR_SYSTEM: return "the operating system refused";
  }
  return "an unknown status";
}

static uint32_t swap32(uint32_t value) {
  return value >> 24 | (value >> 8 & 0xff00u) | (value << 8 & 0xff0000u) | value << 24;
}

/* The bus is little-endian; so is this processor, or the bytes change places. */
static uint32_t from_bus(uint32_t value) {
  const uint16_t probe = 1;
  uint8_t first;
  memcpy(&first, &probe, 1);
  return first == 1 ? value : swap32(value);
}

uint32_t heddle_mmio_read(void *context, uint32_t offset) {
  return from_bus(*((volatile uint32_t *)context + offset / 4));
}

void heddle_mmio_write(void *context, uint32_t offset, uint32_t value) {
  *((volatile uint32_t *)context + offset / 4) = from_bus(value);
}

static uint32_t read_register(const heddle_device *device, uint32_t offset) {
  return device->read_register(device->context, offset);
}

static void write_register(const heddle_device *device, uint32_t offset, uint32_t value) {
  device->write_register(device->context, offset, value);
}

static void flush(const heddle_device *device, size_t offset, size_t bytes) {
  if (device->flush != NULL && bytes != 0) device->flush(device->context, device->memory + offset, bytes);
}

static void invalidate(const heddle_device *device, size_t offset, size_t bytes) {
  if (device->invalidate != NULL && bytes != 0) device->invalidate(device->context, device->memory + offset, bytes);
}

heddle_status heddle_open(const heddle_device *device, const heddle_program *program) {
  if (device == NULL || program == NULL || device->read_register == NULL || device->write_register == NULL || device->memory == NULL) {
    return HEDDLE_ERROR_ARGUMENT;
  }
  if (device->memory_bytes < program->dram_bytes || device->memory_bus_address % 4096 != 0) return HEDDLE_ERROR_MEMORY;
  if (read_register(device, HEDDLE_REGISTER_ID) != HEDDLE_ID) return HEDDLE_ERROR_NO_DEVICE;
  if (read_register(device, HEDDLE_REGISTER_LANES) != program->lanes) return HEDDLE_ERROR_WRONG_HARDWARE;
  return HEDDLE_OK;
}

/* HEDDLE_OK as soon as the done bit is set. */
static heddle_status wait_done(const heddle_device *device, uint32_t timeout_us) {
  const uint64_t start = device->now_us != NULL ? device->now_us(device->context) : 0;
  uint64_t polls = 0;
  for (;;) {
    const uint32_t status = read_register(device, HEDDLE_REGISTER_STATUS);
    uint64_t passed;
    if ((status & HEDDLE_STATUS_DONE) != 0) return (status & HEDDLE_STATUS_ERROR) != 0 ? HEDDLE_ERROR_BUS : HEDDLE_OK;
    passed = device->now_us != NULL ? device->now_us(device->context) - start : polls;
    if (passed >= timeout_us) return HEDDLE_ERROR_TIMEOUT;
    if (device->wait_interrupt != NULL && device->wait_interrupt(device->context, (uint32_t)(timeout_us - passed)) != 0) {
      return HEDDLE_ERROR_SYSTEM;
    }
    ++polls;
  }
}

static heddle_status run_program(const heddle_device *device, uint32_t address, uint32_t timeout_us) {
  const uint32_t interrupt = device->wait_interrupt != NULL ? HEDDLE_CONTROL_INTERRUPT_ENABLE : 0u;
  heddle_status result;
  if ((read_register(device, HEDDLE_REGISTER_STATUS) & HEDDLE_STATUS_BUSY) != 0) return HEDDLE_ERROR_BUSY;
  write_register(device, HEDDLE_REGISTER_STATUS, HEDDLE_STATUS_DONE);
  write_register(device, HEDDLE_REGISTER_BASE_LOW, (uint32_t)(device->memory_bus_address & 0xffffffffu));
  write_register(device, HEDDLE_REGISTER_BASE_HIGH, (uint32_t)(device->memory_bus_address >> 32));
  write_register(device, HEDDLE_REGISTER_PROGRAM, address);
  write_register(device, HEDDLE_REGISTER_CONTROL, HEDDLE_CONTROL_START | interrupt);
  result = wait_done(device, timeout_us);
  if (result != HEDDLE_ERROR_TIMEOUT) write_register(device, HEDDLE_REGISTER_STATUS, HEDDLE_STATUS_DONE);
  return result;
}

heddle_status heddle_load(const heddle_device *device, const heddle_program *program, const uint8_t *image, uint32_t timeout_us) {
  const heddle_status status = heddle_open(device, program);
  if (status != HEDDLE_OK) return status;
  if (image == NULL) image = program->image;
  if (image == NULL) return HEDDLE_ERROR_ARGUMENT;
  memcpy(device->memory, image, program->image_bytes);
  memset(device->memory + program->image_bytes, 0, program->dram_bytes - program->image_bytes);
  flush(device, 0, program->dram_bytes);
  return run_program(device, program->setup_address, timeout_us);
}

/* Copies between a row-major array and the tensor's places in memory; `digits` counts through the axes. */
#define HEDDLE_MAX_AXES 16u

static heddle_status walk(const heddle_tensor *tensor, uint8_t *memory, const int8_t *from, int8_t *to) {
  uint32_t digits[HEDDLE_MAX_AXES] = {0};
  uint8_t *place = memory + tensor->dram_address;
  uint32_t i;
  if (tensor->axis_count > HEDDLE_MAX_AXES) return HEDDLE_ERROR_ARGUMENT;
  for (i = 0; i < tensor->elements; ++i) {
    uint32_t axis = tensor->axis_count;
    if (from != NULL) memcpy(place, from + i, 1);
    if (to != NULL) memcpy(to + i, place, 1);
    while (axis > 0) {
      const heddle_axis *a = &tensor->axes[--axis];
      place += a->stride_bytes;
      if (++digits[axis] < a->extent) break;
      place -= (ptrdiff_t)a->extent * a->stride_bytes;
      digits[axis] = 0;
    }
  }
  return HEDDLE_OK;
}

heddle_status heddle_set_input(const heddle_device *device, const heddle_program *program, uint32_t index, const int8_t *data) {
  heddle_status status;
  if (device == NULL || program == NULL || data == NULL || index >= program->input_count) return HEDDLE_ERROR_ARGUMENT;
  status = walk(&program->inputs[index], device->memory, data, NULL);
  flush(device, program->inputs[index].dram_address, program->inputs[index].dram_bytes);
  return status;
}

heddle_status heddle_run(const heddle_device *device, const heddle_program *program, uint32_t timeout_us) {
  if (device == NULL || program == NULL) return HEDDLE_ERROR_ARGUMENT;
  return run_program(device, program->run_address, timeout_us);
}

heddle_status heddle_get_output(const heddle_device *device, const heddle_program *program, uint32_t index, int8_t *data) {
  if (device == NULL || program == NULL || data == NULL || index >= program->output_count) return HEDDLE_ERROR_ARGUMENT;
  invalidate(device, program->outputs[index].dram_address, program->outputs[index].dram_bytes);
  return walk(&program->outputs[index], device->memory, NULL, data);
}

heddle_status heddle_read_counters(const heddle_device *device, heddle_counters *counters) {
  static const uint32_t offsets[HEDDLE_COUNTER_COUNT] = HEDDLE_COUNTER_OFFSETS;
  uint32_t i;
  if (device == NULL || counters == NULL) return HEDDLE_ERROR_ARGUMENT;
  counters->cycles = read_register(device, HEDDLE_REGISTER_CYCLES_LOW);
  counters->cycles |= (uint64_t)read_register(device, HEDDLE_REGISTER_CYCLES_HIGH) << 32;
  counters->status = read_register(device, HEDDLE_REGISTER_STATUS);
  counters->waiting = read_register(device, HEDDLE_REGISTER_WAITING);
  for (i = 0; i < HEDDLE_COUNTER_COUNT; ++i) counters->values[i] = read_register(device, offsets[i]);
  return HEDDLE_OK;
}
