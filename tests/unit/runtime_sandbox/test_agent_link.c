#include "unit.h"
START_TEST(test_x)
{
}
END_TEST
UNIT_MAIN("x", test_x)
