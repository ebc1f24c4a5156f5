/* One inference under Linux. Usage: PROGRAM INPUT OUTPUT [WEIGHTS]: files of int8; weights.bin where the image is not in
 * REGION_NAME.c. Needs a UIO device for the accelerator and a u-dma-buf of at least HEDDLE_REGION_UPPER_DRAM_BYTES bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "REGION_NAME.h"
#include "heddle_uio.h"

static int8_t input[HEDDLE_REGION_UPPER_INPUT_0_ELEMENTS];
static int8_t output[HEDDLE_REGION_UPPER_OUTPUT_0_ELEMENTS];

static int read_file(const char *path, void *data, size_t bytes) {
  FILE *file = fopen(path, "rb");
  size_t count = 0;
  if (file == NULL) return 0;
  count = fread(data, 1, bytes, file);
  fclose(file);
  return count == bytes;
}

static int write_file(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  size_t count = 0;
  if (file == NULL) return 0;
  count = fwrite(data, 1, bytes, file);
  return fclose(file) == 0 && count == bytes;
}

/* u-dma-buf tells where its memory lies on the bus. */
static unsigned long long bus_address(void) {
  unsigned long long address = 0;
  FILE *file = fopen("/sys/class/u-dma-buf/udmabuf0/phys_addr", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%llx", &address) != 1) address = 0;
  fclose(file);
  return address;
}

int main(int argc, char **argv) {
  heddle_device device;
  heddle_uio uio;
  heddle_counters counters;
  heddle_status status;
  uint8_t *image = NULL;
  if (argc < 3 || !read_file(argv[1], input, sizeof input)) {
    fprintf(stderr, "usage: %s INPUT OUTPUT [WEIGHTS]\n", argv[0]);
    return 2;
  }
  if (argc > 3) {
    image = malloc(HEDDLE_REGION_UPPER_IMAGE_BYTES);
    if (image == NULL || !read_file(argv[3], image, HEDDLE_REGION_UPPER_IMAGE_BYTES)) return 2;
  }
  status = heddle_uio_open(&uio, &device, "/dev/uio0", "/dev/udmabuf0", bus_address(), HEDDLE_REGION_UPPER_DRAM_BYTES);
  if (status == HEDDLE_OK) {
    status = heddle_load(&device, &heddle_REGION_NAME, image, 1000000u);
    if (status == HEDDLE_OK) status = heddle_set_input(&device, &heddle_REGION_NAME, 0, input);
    if (status == HEDDLE_OK) status = heddle_run(&device, &heddle_REGION_NAME, 1000000u);
    if (status == HEDDLE_OK) status = heddle_get_output(&device, &heddle_REGION_NAME, 0, output);
    if (heddle_read_counters(&device, &counters) == HEDDLE_OK) fprintf(stderr, "%llu cycles\n", (unsigned long long)counters.cycles);
    heddle_uio_close(&uio, &device);
  }
  free(image);
  if (status != HEDDLE_OK) fprintf(stderr, "%s\n", heddle_status_text(status));
  else if (!write_file(argv[2], output, sizeof output)) return 1;
  return (int)status;
}
