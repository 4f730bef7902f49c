// SPDX-License-Identifier: BSD-3-Clause
// What of the explorer's subject has to be C++: exceptions. (operator new and delete are called by their names.)
extern "C" {
int cxx_catch(void (*make)(void *argument), void *argument);
void cxx_throw(void);
}

int cxx_catch(void (*make)(void *argument), void *argument)
{
    try {
        make(argument);
    } catch (int) {
        return 1;
    }
    return 0;
}

void cxx_throw(void)
{
    throw 1;
}
