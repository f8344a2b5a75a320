/* Debian's LLVM 22 was built against glibc 2.36 and takes the names of temporary
   files from its arc4random(). This is the only symbol of the wheel's libraries
   that glibc 2.35 (Ubuntu 22.04) doesn't have. */

#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t number;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    abort(); /* not for four bytes: getrandom(2) */
  return number;
}
