-- The sum of two words, LATENCY cycles after `go`.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.words.all;

entity late_sum is
  generic (LATENCY : positive := 1);
  port (
    clk  : in  std_logic;
    rst  : in  std_logic;
    go   : in  std_logic;
    a, b : in  word;
    done : out std_logic;
    sum  : out word
  );
end entity;

architecture rtl of late_sum is
  signal stages : std_logic_vector(LATENCY - 1 downto 0) := (others => '0');
begin
  done <= stages(LATENCY - 1);

  process (clk)
  begin
    if rising_edge(clk) then
      for i in 1 to LATENCY - 1 loop
        stages(i) <= stages(i - 1) and not rst;
      end loop;
      stages(0) <= go and not rst;
      if go = '1' then
        sum <= std_logic_vector(unsigned(a) + unsigned(b));
      end if;
    end if;
  end process;
end architecture;
