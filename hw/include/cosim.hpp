// Buffers as long as co-simulation reads them: it copies `depth` elements behind every m_axi pointer, however
// few a call uses (UG1399, "pragma HLS interface", depth). The sizes stay, so that guards behind them count.
#pragma once
#include <cstddef>

namespace cosim {
template <class... Vectors> void deepen(std::size_t depth, Vectors&... vectors) { (vectors.reserve(depth), ...); }
}  // namespace cosim
