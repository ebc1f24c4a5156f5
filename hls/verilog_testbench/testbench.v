// Self-checking test bench of heddle_accelerator for any simulator of Verilog-2005, for example Icarus Verilog:
//
//   iverilog -g2005 -o testbench -s testbench testbench.v ../../rtl/*.v && vvp -n testbench
//
// It loads the DRAM image with the region's inputs, runs the set-up and the region's program through the AXI4-Lite
// registers, and compares the outputs in DRAM byte by byte. The last line is PASS or FAIL. parameters.vh, dram.hex,
// expected.hex and outputs.hex belong to one region and one set of inputs. The memory behind the AXI4 master has a fixed
// latency and one beat a cycle in each direction; so the cycles printed are not those of the target's memory.
`timescale 1ns / 1ps

module testbench;
  `include "parameters.vh"

  localparam BEAT_BITS = 8 * BEAT_BYTES;
  localparam QUEUE = 16;  // bursts that the memory holds in each direction

  reg clk = 0;
  reg rst = 1;
  always #5 clk = ~clk;

  // AXI4 between the accelerator and the memory.
  wire [ADDRESS_BITS-1:0] m_axi_araddr, m_axi_awaddr;
  wire [7:0] m_axi_arlen, m_axi_awlen;
  wire [2:0] m_axi_arsize, m_axi_awsize;
  wire [1:0] m_axi_arburst, m_axi_awburst;
  wire m_axi_arvalid, m_axi_awvalid, m_axi_wvalid, m_axi_wlast, m_axi_rready, m_axi_bready;
  wire [BEAT_BITS-1:0] m_axi_wdata;
  wire [BEAT_BYTES-1:0] m_axi_wstrb;
  reg [BEAT_BITS-1:0] m_axi_rdata = 0;
  reg m_axi_rvalid = 0, m_axi_rlast = 0, m_axi_bvalid = 0;

  // AXI4-Lite between the host (the tasks below) and the registers.
  reg [7:0] s_axi_awaddr = 0, s_axi_araddr = 0;
  reg s_axi_awvalid = 0, s_axi_wvalid = 0, s_axi_arvalid = 0;
  reg [31:0] s_axi_wdata = 0;
  wire s_axi_awready, s_axi_wready, s_axi_bvalid, s_axi_arready, s_axi_rvalid;
  wire [31:0] s_axi_rdata;
  wire [1:0] s_axi_bresp, s_axi_rresp;
  wire irq;
  wire [2:0] trace_active;
  wire [15:0] trace_load_tag, trace_compute_tag, trace_store_tag;

  heddle_accelerator accelerator (
      .clk(clk), .rst(rst),
      .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arsize(m_axi_arsize), .m_axi_arburst(m_axi_arburst),
      .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(arready), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(2'b00),
      .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready),
      .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen), .m_axi_awsize(m_axi_awsize), .m_axi_awburst(m_axi_awburst),
      .m_axi_awvalid(m_axi_awvalid), .m_axi_awready(awready), .m_axi_wdata(m_axi_wdata), .m_axi_wstrb(m_axi_wstrb),
      .m_axi_wlast(m_axi_wlast), .m_axi_wvalid(m_axi_wvalid), .m_axi_wready(wready),
      .m_axi_bresp(2'b00), .m_axi_bvalid(m_axi_bvalid), .m_axi_bready(m_axi_bready),
      .s_axi_awaddr(s_axi_awaddr), .s_axi_awvalid(s_axi_awvalid), .s_axi_awready(s_axi_awready),
      .s_axi_wdata(s_axi_wdata), .s_axi_wstrb(4'b1111), .s_axi_wvalid(s_axi_wvalid), .s_axi_wready(s_axi_wready),
      .s_axi_bresp(s_axi_bresp), .s_axi_bvalid(s_axi_bvalid), .s_axi_bready(1'b1),
      .s_axi_araddr(s_axi_araddr), .s_axi_arvalid(s_axi_arvalid), .s_axi_arready(s_axi_arready),
      .s_axi_rdata(s_axi_rdata), .s_axi_rresp(s_axi_rresp), .s_axi_rvalid(s_axi_rvalid), .s_axi_rready(1'b1),
      .irq(irq), .trace_active(trace_active), .trace_load_tag(trace_load_tag), .trace_compute_tag(trace_compute_tag),
      .trace_store_tag(trace_store_tag));

  // Memory. All its state changes at the rising edge, without blocking.
  reg [BEAT_BITS-1:0] dram [0:DRAM_BEATS-1];
  reg [BEAT_BITS-1:0] expected [0:DRAM_BEATS-1];
  reg [31:0] outputs [0:2*OUTPUTS-1];  // address and size in bytes of each

  reg [31:0] cycle = 0;
  reg [31:0] read_beat [0:QUEUE-1];  // next beat of the burst, as an index of dram
  reg [8:0] read_left [0:QUEUE-1];
  reg [31:0] read_due [0:QUEUE-1];
  reg [31:0] write_beat [0:QUEUE-1];
  reg [31:0] response_due [0:QUEUE-1];
  reg [4:0] read_head = 0, read_tail = 0, write_head = 0, write_tail = 0, response_head = 0, response_tail = 0;
  reg [31:0] read_done = 0, write_done = 0;  // beats of the head burst

  wire [4:0] reads = read_tail - read_head;
  wire [4:0] writes = write_tail - write_head;
  wire [4:0] responses = response_tail - response_head;
  wire arready = reads < QUEUE;
  wire awready = writes < QUEUE;
  wire wready = writes != 0 && responses < QUEUE;
  wire [3:0] read_at = read_head[3:0];
  wire [31:0] write_to = write_beat[write_head[3:0]] + write_done;

  integer i;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (!rst) begin
      if (m_axi_arvalid && arready) begin
        read_beat[read_tail[3:0]] <= m_axi_araddr / BEAT_BYTES;
        read_left[read_tail[3:0]] <= {1'b0, m_axi_arlen} + 9'd1;
        read_due[read_tail[3:0]] <= cycle + LATENCY_CYCLES;
        read_tail <= read_tail + 1;
      end
      if (!m_axi_rvalid || m_axi_rready) begin
        m_axi_rvalid <= reads != 0 && read_due[read_at] <= cycle;
        if (reads != 0 && read_due[read_at] <= cycle) begin
          m_axi_rdata <= dram[read_beat[read_at] + read_done];
          m_axi_rlast <= read_done + 1 == read_left[read_at];
          read_done <= read_done + 1 == read_left[read_at] ? 0 : read_done + 1;
          if (read_done + 1 == read_left[read_at]) read_head <= read_head + 1;
        end
      end
      if (m_axi_awvalid && awready) begin
        write_beat[write_tail[3:0]] <= m_axi_awaddr / BEAT_BYTES;
        write_tail <= write_tail + 1;
      end
      if (m_axi_wvalid && wready) begin
        for (i = 0; i < BEAT_BYTES; i = i + 1) begin
          if (m_axi_wstrb[i]) dram[write_to][8*i+:8] <= m_axi_wdata[8*i+:8];
        end
        write_done <= m_axi_wlast ? 0 : write_done + 1;
        if (m_axi_wlast) begin
          write_head <= write_head + 1;
          response_due[response_tail[3:0]] <= cycle + LATENCY_CYCLES;
          response_tail <= response_tail + 1;
        end
      end
      if (!m_axi_bvalid || m_axi_bready) begin
        m_axi_bvalid <= responses != 0 && response_due[response_head[3:0]] <= cycle;
        if (responses != 0 && response_due[response_head[3:0]] <= cycle) response_head <= response_head + 1;
      end
    end
  end

  // The host. Its signals change at the falling edge and are sampled, with the answers, just before the rising one.
  reg address_open, data_open, address_taken, data_taken, answered;

  task write_register(input [7:0] address, input [31:0] value);
    begin
      s_axi_awaddr = address;
      s_axi_wdata = value;
      address_open = 1;
      data_open = 1;
      answered = 0;
      while (!answered) begin
        @(negedge clk);
        s_axi_awvalid = address_open;
        s_axi_wvalid = data_open;
        #4;
        address_taken = s_axi_awvalid && s_axi_awready;
        data_taken = s_axi_wvalid && s_axi_wready;
        answered = s_axi_bvalid;
        @(posedge clk);
        if (address_taken) address_open = 0;
        if (data_taken) data_open = 0;
      end
      @(negedge clk);
      s_axi_awvalid = 0;
      s_axi_wvalid = 0;
    end
  endtask

  reg [31:0] read_value;
  task read_register(input [7:0] address);
    begin
      s_axi_araddr = address;
      address_open = 1;
      answered = 0;
      while (!answered) begin
        @(negedge clk);
        s_axi_arvalid = address_open;
        #4;
        address_taken = s_axi_arvalid && s_axi_arready;
        answered = s_axi_rvalid;
        if (answered) read_value = s_axi_rdata;
        @(posedge clk);
        if (address_taken) address_open = 0;
      end
      @(negedge clk);
      s_axi_arvalid = 0;
    end
  endtask

  task run_program(input [31:0] address);
    begin
      write_register(REGISTER_PROGRAM, address);
      write_register(REGISTER_CONTROL, 32'd3);  // start, interrupt enabled
      while (!irq) begin
        @(negedge clk);
        if (cycle > MAX_CYCLES) begin
          $display("FAIL: no interrupt after %0d cycles; active units (store, compute, load) %b", cycle, trace_active);
          $finish;
        end
      end
      read_register(REGISTER_STATUS);
      if (read_value[2]) begin
        $display("FAIL: the accelerator reports an error");
        $finish;
      end
      write_register(REGISTER_STATUS, 32'd2);  // clears done
    end
  endtask

  integer output_index, at, wrong, compared;
  initial begin
    $readmemh("dram.hex", dram);
    $readmemh("expected.hex", expected);
    $readmemh("outputs.hex", outputs);
    repeat (8) @(negedge clk);
    rst = 0;
    write_register(REGISTER_BASE_LOW, 32'd0);
    write_register(REGISTER_BASE_HIGH, 32'd0);
    run_program(SETUP_ADDRESS);
    run_program(RUN_ADDRESS);
    read_register(REGISTER_CYCLES_LOW);
    wrong = 0;
    compared = 0;
    for (output_index = 0; output_index < OUTPUTS; output_index = output_index + 1) begin
      for (at = outputs[2*output_index]; at < outputs[2*output_index] + outputs[2*output_index+1]; at = at + 1) begin
        compared = compared + 1;
        if (dram[at/BEAT_BYTES][8*(at%BEAT_BYTES)+:8] !== expected[at/BEAT_BYTES][8*(at%BEAT_BYTES)+:8]) begin
          if (wrong == 0) begin
            $display("output %0d differs first at DRAM address %0d: %h, expected %h", output_index, at,
                     dram[at/BEAT_BYTES][8*(at%BEAT_BYTES)+:8], expected[at/BEAT_BYTES][8*(at%BEAT_BYTES)+:8]);
          end
          wrong = wrong + 1;
        end
      end
    end
    $display("%0d of %0d bytes equal after %0d cycles", compared - wrong, compared, read_value);
    $display("%0s", wrong == 0 && compared > 0 ? "PASS" : "FAIL");
    $finish;
  end
endmodule
