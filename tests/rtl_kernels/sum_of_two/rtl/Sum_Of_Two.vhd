-- ap_ctrl_hs behind AXI4-Lite: control at 0x00, a at 0x10, b at 0x18, sum at 0x20, its valid bit
-- at 0x24. VHDL has no case: the entity's name and the ports' are written as people write them.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.words.all;

entity Sum_Of_Two is
  generic (
    C_S_AXI_CONTROL_ADDR_WIDTH : integer := 6;
    C_S_AXI_CONTROL_DATA_WIDTH : integer := 32;
    LATENCY                    : positive := 20
  );
  port (
    ap_clk                : in  std_logic;
    ap_rst_n              : in  std_logic;
    s_axi_control_AWVALID : in  std_logic;
    s_axi_control_AWREADY : out std_logic;
    s_axi_control_AWADDR  : in  std_logic_vector(C_S_AXI_CONTROL_ADDR_WIDTH - 1 downto 0);
    s_axi_control_WVALID  : in  std_logic;
    s_axi_control_WREADY  : out std_logic;
    s_axi_control_WDATA   : in  std_logic_vector(C_S_AXI_CONTROL_DATA_WIDTH - 1 downto 0);
    s_axi_control_WSTRB   : in  std_logic_vector(C_S_AXI_CONTROL_DATA_WIDTH / 8 - 1 downto 0);
    s_axi_control_ARVALID : in  std_logic;
    s_axi_control_ARREADY : out std_logic;
    s_axi_control_ARADDR  : in  std_logic_vector(C_S_AXI_CONTROL_ADDR_WIDTH - 1 downto 0);
    s_axi_control_RVALID  : out std_logic;
    s_axi_control_RREADY  : in  std_logic;
    s_axi_control_RDATA   : out std_logic_vector(C_S_AXI_CONTROL_DATA_WIDTH - 1 downto 0);
    s_axi_control_RRESP   : out std_logic_vector(1 downto 0);
    s_axi_control_BVALID  : out std_logic;
    s_axi_control_BREADY  : in  std_logic;
    s_axi_control_BRESP   : out std_logic_vector(1 downto 0);
    interrupt             : out std_logic
  );
end entity;

architecture rtl of Sum_Of_Two is
  type phase is (idle, busy);
  signal state                  : phase := idle;
  signal ap_start, ap_done      : std_logic := '0';
  signal ap_idle                : std_logic;
  signal finished, valid, first : std_logic := '0';
  signal b_valid, r_valid       : std_logic := '0';
  signal a, b, sum              : word := (others => '0');
begin
  adder : entity work.late_sum
    generic map (LATENCY => LATENCY)
    port map (
      clk => ap_clk, rst => not ap_rst_n, go => first, a => a, b => b, done => ap_done, sum => sum
    );

  s_axi_control_AWREADY <= s_axi_control_AWVALID and s_axi_control_WVALID and not b_valid;
  s_axi_control_WREADY  <= s_axi_control_AWVALID and s_axi_control_WVALID and not b_valid;
  s_axi_control_BVALID  <= b_valid;
  s_axi_control_BRESP   <= "00";
  s_axi_control_ARREADY <= not r_valid;
  s_axi_control_RVALID  <= r_valid;
  s_axi_control_RRESP   <= "00";
  interrupt             <= '0';
  ap_idle               <= '1' when state = idle else '0';

  process (ap_clk)
  begin
    if rising_edge(ap_clk) then
      first <= '0';
      if s_axi_control_BREADY = '1' then
        b_valid <= '0';
      end if;
      if s_axi_control_RREADY = '1' then
        r_valid <= '0';
      end if;
      if ap_done = '1' then
        state    <= idle;
        ap_start <= '0';
        finished <= '1';
        valid    <= '1';
      end if;
      if s_axi_control_AWVALID = '1' and s_axi_control_WVALID = '1' and b_valid = '0' then
        b_valid <= '1';
        case to_integer(unsigned(s_axi_control_AWADDR)) is
          when 16#00# =>
            if s_axi_control_WDATA(0) = '1' and state = idle then
              ap_start <= '1';
              first    <= '1';
              state    <= busy;
            end if;
          when 16#10# => a <= s_axi_control_WDATA;
          when 16#18# => b <= s_axi_control_WDATA;
          when others => null;
        end case;
      end if;
      if s_axi_control_ARVALID = '1' and r_valid = '0' then
        r_valid             <= '1';
        s_axi_control_RDATA <= (others => '0');
        case to_integer(unsigned(s_axi_control_ARADDR)) is
          when 16#00# =>
            s_axi_control_RDATA(0) <= ap_start;
            s_axi_control_RDATA(1) <= finished;
            s_axi_control_RDATA(3) <= finished;
            s_axi_control_RDATA(2) <= ap_idle;
            finished <= ap_done;
          when 16#10# => s_axi_control_RDATA <= a;
          when 16#18# => s_axi_control_RDATA <= b;
          when 16#20# => s_axi_control_RDATA <= sum;
          when 16#24# => s_axi_control_RDATA(0) <= valid;
          when others => null;
        end case;
      end if;
      if ap_rst_n = '0' then
        state    <= idle;
        ap_start <= '0';
        finished <= '0';
        valid    <= '0';
        b_valid  <= '0';
        r_valid  <= '0';
      end if;
    end if;
  end process;
end architecture;
