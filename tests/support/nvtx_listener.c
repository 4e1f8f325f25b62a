/* A profiler of the least kind: it writes the name of each NVTX range that is begun, and a line for each that ends, to the
   file that NVTX_LISTENER names. NVTX loads it where NVTX_INJECTION64_PATH does. The tables and numbers are those of
   NVTX 3 (nvtx3/nvToolsExt.h, nvtx3/nvtxDetail/nvtxTypes.h, NVIDIA). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLBACKS = 1, CORE = 1, PUSH_EX = 8, PUSH_ASCII = 9, POP = 11, ASCII = 1 };

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} Attributes;

typedef struct {
    size_t size;
    int (*functions)(int module, void ****table, unsigned int *count);
} Callbacks;

static void
write_line(const char *text)
{
    FILE *file = fopen(getenv("NVTX_LISTENER"), "a");
    fprintf(file, "%s\n", text);
    fclose(file);
}

static int
push_ascii(const char *message)
{
    write_line(message);
    return 0;
}

static int
push(const Attributes *attributes)
{
    return push_ascii(attributes->message_type == ASCII ? attributes->message : "(no text)");
}

static int
pop(void)
{
    write_line("end");
    return 0;
}

int
InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
    const Callbacks *callbacks = export_table(CALLBACKS);
    void ***table;
    unsigned int count;
    if (callbacks == NULL || !callbacks->functions(CORE, &table, &count) || count <= POP)
        return 0;
    *table[PUSH_EX] = (void *)push;
    *table[PUSH_ASCII] = (void *)push_ascii;
    *table[POP] = (void *)pop;
    return 1;
}
