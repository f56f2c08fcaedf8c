library ieee;
use ieee.std_logic_1164.all;

package words is
  constant BITS : integer := 32;
  subtype word is std_logic_vector(BITS - 1 downto 0);
end package;
