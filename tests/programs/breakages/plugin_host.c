/* plugin_host.c PLUGIN... - opens each library, lets it work, closes it; no CUDA of its own. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int is_mapped(const char *path)
{
    char line[4096];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        found += strstr(line, path) != NULL;
    if (f)
        fclose(f);
    return found > 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        float (*run)(void) = plugin ? (float (*)(void))dlsym(plugin, "plugin_run") : NULL;
        if (!run) {
            printf("%s\n", dlerror());
            return 2;
        }
        printf("%g", (double)run());
        dlclose(plugin);
        printf(" %s\n", is_mapped(argv[i]) ? "stays" : "gone");
    }
    return 0;
}
