`default_nettype none
// heddle_array with 4 x 4 lanes and no depthwise, pooling or elementwise unit: two products in a multiplier are exact for every
// combination of corner values of two lanes' bytes and two columns' weights. Says "0 errors in N steps".
module packed_products;
  reg clk = 0, rst = 1;
  always #1 clk = ~clk;
  reg [31:0] lanes = 0;
  reg [127:0] weights = 0;
  wire [127:0] accumulators;
  wire complete, busy;
  wire [31:0] operand_b;
  heddle_array dut (.clk(clk), .rst(rst), .instruction(0), .valid(1'b1), .step_b(1'b0), .step_first(1'b1),
                    .step_last(1'b1), .by_vector(1'b0), .lanes(lanes), .weights(weights), .complete(complete), .busy(busy),
                    .accumulators(accumulators), .operand_b(operand_b));
  function signed [31:0] corner(input integer i);
    case (i)
      0: corner = -128; 1: corner = -127; 2: corner = -1; 3: corner = 0; 4: corner = 1; default: corner = 127;
    endcase
  endfunction
  integer i, column, errors;
  reg signed [31:0] a0, a1, w00, w01, w10, w11;
  reg signed [31:0] even [0:2];
  reg signed [31:0] odd [0:2];
  initial begin
    errors = 0;
    repeat (3) @(negedge clk);
    rst = 0;
    for (i = 0; i < 6*6*6*6*6*6 + 2; i = i + 1) begin
      a0 = corner(i % 6); a1 = corner(i / 6 % 6); w00 = corner(i / 36 % 6); w01 = corner(i / 216 % 6);
      w10 = corner(i / 1296 % 6); w11 = corner(i / 7776 % 6);
      lanes = {a1[7:0], a0[7:0], a1[7:0], a0[7:0]};
      weights = {w11[7:0], w10[7:0], 16'd0, w01[7:0], w00[7:0], 16'd0, 16'd0, w11[7:0], w10[7:0], 16'd0, w01[7:0], w00[7:0]};
      even[2] = even[1]; even[1] = even[0]; even[0] = a0 * w00 + a1 * w10;
      odd[2] = odd[1]; odd[1] = odd[0]; odd[0] = a0 * w01 + a1 * w11;
      @(negedge clk);
      if (i >= 1) begin
        for (column = 0; column < 4; column = column + 2) begin
          if ($signed(accumulators[column*32 +: 32]) !== even[1]) errors = errors + 1;
          if ($signed(accumulators[column*32+32 +: 32]) !== odd[1]) errors = errors + 1;
        end
      end
    end
    $display("%0d errors in %0d steps", errors, i);
    $finish;
  end
endmodule
