// What the tools' `ap_int.h` is made of; some programs include it by itself.
#pragma once
#include "ap_int.h"
