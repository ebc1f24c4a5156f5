// The top module: wires the units, their queues, the memories and the AXI ports together.

#include <bit>

#include "hls/accelerator/accelerator.h"
#include "hls/accelerator/unit_front.h"
#include "hls/registers.h"
#include "ir/check.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

class TopBuilder {
 public:
  TopBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), design_(design), m_(design.Add(kTopModule, "The accelerator: AXI4 master, AXI4-Lite slave, interrupt.")) {}

  Module& Build() {
    AddControlInstance();
    AddReadPortInstance();
    AddFetchInstance();
    AddUnits();
    AddMemories();
    AddTokensInstance();
    AddWriteChannel();
    AddStatus();
    m_.Finish();
    return m_;
  }

 private:
  using Ports = std::map<std::string, Expr>;

  // The wire `name`, made at its first use.
  Expr Net(const std::string& name, int width) {
    const auto [found, is_new] = nets_.try_emplace(name);
    if (is_new) found->second = m_.Wire(name, width);
    HEDDLE_CHECK(found->second.width() == width, "width of " + name);
    return found->second;
  }

  // Instantiates a module: a port that `ports` does not name is connected to the wire PREFIX_port.
  void Add(const std::string& module, const std::string& prefix, Ports ports) {
    const Module& child = Find(design_, module);
    for (const Module::Port& port : child.ports()) {
      const std::string& name = port.signal->name;
      if (ports.count(name) == 0) ports[name] = Net(prefix + "_" + name, port.signal->width);
    }
    m_.Instantiate(child, prefix, ports);
  }

  void AddControlInstance() {
    Ports ports;
    for (const Module::Port& port : Find(design_, "heddle_control").ports()) {
      const std::string& name = port.signal->name;
      const bool is_axi = name.starts_with("aw") || name.starts_with("ar") || name.starts_with("w") || name == "bready" ||
                          name == "bvalid" || name == "rready" || name == "rvalid" || name == "rdata";
      if (!is_axi || name == "waiting") continue;
      const std::string outer = "s_axi_" + name;
      ports[name] = port.is_input ? m_.Input(outer, port.signal->width) : AxiOutput(outer, port.signal->width);
    }
    m_.Assign(m_.Output("s_axi_bresp", 2), Zeros(2));
    m_.Assign(m_.Output("s_axi_rresp", 2), Zeros(2));
    const Expr strobe = m_.Input("s_axi_wstrb", 4, "ignored: registers are written whole");
    m_.Ignore({strobe});
    ports["irq"] = AxiOutput("irq", 1);
    Add("heddle_control", "control", ports);
  }

  // An output port that an instance drives.
  Expr AxiOutput(const std::string& name, int width) { return m_.Output(name, width); }

  void AddReadPortInstance() {
    m_.Comment("AXI read channels.");
    data_ = m_.Input("m_axi_rdata", w_.beat);
    Add("heddle_read_port", "reads",
        {{"base", Net("control_base", p_.axi_address_bits)}, {"fetch_want", Net("fetch_read_want", 1)},
         {"fetch_address", Net("fetch_read_address", 32)}, {"fetch_beats", Net("fetch_read_beats", kBeatCountBits)},
         {"fetch_take", Net("fetch_read_take", 1)}, {"load_want", Net("load_read_want", 1)},
         {"load_address", Net("load_read_address", 32)}, {"load_beats", Net("load_read_beats", kBeatCountBits)},
         {"load_take", Net("load_read_take", 1)}, {"arready", m_.Input("m_axi_arready", 1)},
         {"arvalid", AxiOutput("m_axi_arvalid", 1)}, {"araddr", AxiOutput("m_axi_araddr", p_.axi_address_bits)},
         {"arlen", AxiOutput("m_axi_arlen", 8)}, {"rvalid", m_.Input("m_axi_rvalid", 1)}, {"rlast", m_.Input("m_axi_rlast", 1)},
         {"rresp", m_.Input("m_axi_rresp", 2)}, {"rready", AxiOutput("m_axi_rready", 1)},
         {"load_data_ready", Net("load_data_ready", 1)}, {"load_data_valid", Net("load_data_valid", 1)},
         {"fetch_data_valid", Net("fetch_data_valid", 1)}});
    const int size = std::countr_zero(static_cast<unsigned>(p_.beat_bytes()));
    for (const std::string channel : {"ar", "aw"}) {
      m_.Assign(m_.Output("m_axi_" + channel + "size", 3), Const(3, size));
      m_.Assign(m_.Output("m_axi_" + channel + "burst", 2), Const(2, 1));
    }
  }

  void AddFetchInstance() {
    m_.Comment("Instruction fetch and the units' queues.");
    Add("heddle_fetch", "fetch", {{"start", Net("control_start", 1)}, {"program_at", Net("control_program_at", 32)}, {"data", data_}});
    const Expr instruction = Net("fetch_instruction", w_.compute_bits);
    const std::tuple<const char*, int, int> queues[] = {{"load", w_.transfer_bits, p_.load_queue},
                                                        {"compute", w_.compute_bits, p_.compute_queue},
                                                        {"store", w_.transfer_bits, p_.store_queue}};
    for (const auto& [unit, bits, depth] : queues) {
      const std::string name = unit;
      Add("heddle_" + name + "_queue", name + "_queue",
          {{"push", Net("fetch_" + name + "_push", 1)}, {"push_data", Slice(instruction, 0, bits)},
           {"can_push", Net("fetch_" + name + "_can_push", 1)}, {"valid", Net(name + "_queue_valid", 1)},
           {"data", Net(name + "_queue_data", bits)}, {"pop", Net(name + "_queue_pop", 1)}});
    }
  }

  void AddUnits() {
    m_.Comment("Load, compute, store.");
    Add("heddle_load", "load", {{"read_take", Net("load_read_take", 1)}, {"data", data_}, {"load_data", Net("loaded", w_.beat)}});
    Ports compute = {{"load_data", Net("loaded", w_.beat)}};
    for (const char* target : {"weight", "parameter", "lookup"}) {
      const std::string name = target;
      if (name == "lookup" && !p_.lookup) continue;
      for (const char* part : {"_write", "_beat", "_word"}) {
        const auto& wire = nets_.at("load_" + name + part);
        if (name != "lookup" || std::string(part) == "_write") compute[name + part] = wire;
      }
    }
    if (p_.lookup) {
      const Expr table = nets_.at("load_lookup_word"), beat = nets_.at("load_lookup_beat");
      compute["lookup_address"] = p_.lookup_tables > 1 ? Concat({table, beat}) : beat;
      if (p_.lookup_tables == 1) m_.Ignore({table});
    }
    Add("heddle_compute", "compute", compute);
    Add("heddle_store", "store",
        {{"base", Net("control_base", p_.axi_address_bits)}, {"awready", m_.Input("m_axi_awready", 1)},
         {"awvalid", AxiOutput("m_axi_awvalid", 1)}, {"awaddr", AxiOutput("m_axi_awaddr", p_.axi_address_bits)},
         {"awlen", AxiOutput("m_axi_awlen", 8)}, {"wready", m_.Input("m_axi_wready", 1)}, {"wvalid", AxiOutput("m_axi_wvalid", 1)},
         {"wdata", AxiOutput("m_axi_wdata", w_.beat)}, {"wstrb", AxiOutput("m_axi_wstrb", p_.beat_bytes())},
         {"wlast", AxiOutput("m_axi_wlast", 1)}, {"bvalid", bvalid_ = m_.Input("m_axi_bvalid", 1)}});
  }

  void AddMemories() {
    m_.Comment("Activation memory.");
    Add("heddle_activation_memory", "activations",
        {{"compute_want", nets_.at("compute_want")}, {"compute_banks", nets_.at("compute_read_banks")},
         {"compute_address", nets_.at("compute_read_address")}, {"compute_go", nets_.at("compute_go")},
         {"compute_line", nets_.at("compute_line")}, {"store_want", nets_.at("store_read_want")},
         {"store_address", nets_.at("store_read_address")}, {"store_go", nets_.at("store_read_go")},
         {"store_data", nets_.at("store_read_data")}, {"drain_valid", nets_.at("compute_drain_write_valid")},
         {"drain_address", nets_.at("compute_drain_write_address")}, {"drain_data", nets_.at("compute_drain_write_data")},
         {"drain_mask", nets_.at("compute_drain_write_mask")}, {"load_valid", nets_.at("load_activation_valid")},
         {"load_address", nets_.at("load_activation_address")}, {"load_data", nets_.at("loaded")},
         {"load_mask", nets_.at("load_activation_mask")}, {"load_go", nets_.at("load_activation_go")}});
  }

  void AddTokensInstance() {
    m_.Comment("Tokens.");
    Ports ports = {{"clear", nets_.at("control_start")}};
    for (const std::string unit : {"load", "compute", "store"}) {
      ports[unit + "_start"] = nets_.at(unit + "_started");
      ports[unit + "_waits"] = nets_.at(unit + "_start_waits");
      ports[unit + "_finish"] = nets_.at(unit + "_finished");
      ports[unit + "_signals"] = nets_.at(unit + "_finish_signals");
      ports[unit + "_tokens"] = nets_.at(unit + "_tokens");
    }
    Add("heddle_tokens", "token_counters", ports);
  }

  void AddWriteChannel() {
    const Expr response = m_.Input("m_axi_bresp", 2);
    m_.Assign(m_.Output("m_axi_bready", 1), Const(1, 1));
    write_error_ = m_.Name("write_error", bvalid_ & AnyBit(response));
  }

  void AddStatus() {
    m_.Comment("What the registers and the trace port see.");
    const Expr load = nets_.at("load_is_active"), compute = nets_.at("compute_is_active"), store = nets_.at("store_is_active");
    std::vector<Expr> idle = {nets_.at("fetch_is_done"), ~load, ~compute, ~store};
    for (const std::string unit : {"load", "compute", "store"}) idle.push_back(~nets_.at(unit + "_queue_valid"));
    m_.Assign(nets_.at("control_all_idle"), AllOf(idle));
    m_.Assign(nets_.at("control_new_error"), AnyOf({nets_.at("fetch_is_error"), nets_.at("reads_is_error"), write_error_}));
    const Expr waits_compute = m_.Name("compute_waits", nets_.at("compute_event_wait_token") & ~compute);
    const Expr waits_store = m_.Name("store_waits", nets_.at("store_event_wait_token") & ~store);
    m_.Assign(nets_.at("control_waiting"), Concat({store, compute, load, Zeros(5), waits_store, waits_compute,
                                                   nets_.at("load_event_wait_token")}));
    const std::map<std::string, Expr> events = {
        {"fetch_wait_queue", nets_.at("fetch_event_wait_queue")},
        {"load_busy", load},
        {"load_wait_token", nets_.at("load_event_wait_token")},
        {"load_wait_address", nets_.at("load_read_want") & ~nets_.at("load_read_take")},
        {"load_wait_data", nets_.at("load_event_wait_data")},
        {"load_wait_bank", nets_.at("load_event_wait_bank")},
        {"load_beats", nets_.at("load_event_beat")},
        {"compute_busy", compute},
        {"compute_steps", nets_.at("compute_go")},
        {"compute_wait_token", waits_compute},
        {"compute_wait_drain", nets_.at("compute_event_wait_drain")},
        {"compute_wait_bank", nets_.at("compute_want") & ~nets_.at("compute_go")},
        {"compute_empty", ~compute & ~nets_.at("compute_queue_valid")},
        {"store_busy", store},
        {"store_wait_token", waits_store},
        {"store_wait_bank", nets_.at("store_event_wait_bank")},
        {"store_wait_data", nets_.at("store_event_wait_data")},
        {"store_wait_response", nets_.at("store_event_wait_response")},
        {"store_beats", nets_.at("store_event_beat")}};
    for (const auto& [name, event] : events) m_.Assign(nets_.at("control_event_" + name), event);
    m_.Assign(m_.Output("trace_active", 3, "load, compute, store: an instruction is in execution"), Concat({store, compute, load}));
    for (const std::string unit : {"load", "compute", "store"}) {
      m_.Assign(m_.Output("trace_" + unit + "_tag", 16), nets_.at(unit + "_tag"));
    }
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Design& design_;
  Module& m_;
  Ports nets_;
  Expr data_, bvalid_, write_error_;
};

}  // namespace

Module& AddTop(Design& design, const AcceleratorParams& params) { return TopBuilder(design, params).Build(); }

std::map<std::string, std::string> GenerateVerilog(const AcceleratorParams& params) {
  HEDDLE_CHECK(CheckParams(params).ok(), "parameters that were not checked");
  const Widths widths(params);
  Design design;
  AddQueue(design, "heddle_load_queue", widths.transfer_bits, params.load_queue, "Instructions for the load unit.");
  AddQueue(design, "heddle_compute_queue", widths.compute_bits, params.compute_queue, "Instructions for the compute unit.");
  AddQueue(design, "heddle_store_queue", widths.transfer_bits, params.store_queue, "Instructions for the store unit.");
  AddActivationMemory(design, params);
  AddSequencer(design, params);
  AddOperands(design, params);
  AddArray(design, params);
  AddDrain(design, params);
  AddCompute(design, params);
  AddLoad(design, params);
  AddStore(design, params);
  AddFetch(design, params);
  AddReadPort(design, params);
  AddTokens(design);
  AddControl(design, params);
  AddTop(design, params);
  return design.Files();
}

}  // namespace heddle::hls
