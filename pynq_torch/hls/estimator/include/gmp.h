// The tools have this library for simulation; its header alone is included in synthesis, unused.
#pragma once
