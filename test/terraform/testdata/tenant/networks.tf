# SPDX-License-Identifier: Apache-2.0

resource "vcd_network_routed_v2" "app" {
  for_each        = local.gateways
  name            = "tf-app"
  description     = "Applications, revision ${var.revision}"
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id
  gateway         = "192.168.210.1"
  prefix_length   = 24
  dns1            = "192.168.210.1"
  dns2            = var.revision > 1 ? "192.168.210.2" : null
  dns_suffix      = "app.example"

  static_ip_pool {
    start_address = "192.168.210.10"
    end_address   = var.revision > 1 ? "192.168.210.79" : "192.168.210.59"
  }
  static_ip_pool {
    start_address = "192.168.210.100"
    end_address   = "192.168.210.109"
  }

  metadata_entry {
    key         = "team"
    value       = "apps ${var.revision}"
    type        = "MetadataStringValue"
    user_access = "READWRITE"
    is_system   = false
  }
}

resource "vcd_network_isolated_v2" "backend" {
  owner_id      = data.vcd_org_vdc.vdc.id
  name          = "tf-backend"
  description   = "Databases, revision ${var.revision}"
  gateway       = "192.168.211.1"
  prefix_length = 24

  static_ip_pool {
    start_address = "192.168.211.10"
    end_address   = "192.168.211.99"
  }
}

resource "vcd_nsxt_network_dhcp" "app" {
  for_each       = local.gateways
  org_network_id = vcd_network_routed_v2.app[each.key].id
  lease_time     = 3600 * var.revision
  dns_servers    = ["192.168.210.1", "192.168.210.2"]

  pool {
    start_address = "192.168.210.150"
    end_address   = "192.168.210.199"
  }
}

resource "vcd_nsxt_network_dhcp_binding" "printer" {
  for_each       = local.gateways
  org_network_id = vcd_nsxt_network_dhcp.app[each.key].id
  name           = "tf-printer"
  description    = "Printer, revision ${var.revision}"
  binding_type   = "IPV4"
  ip_address     = "192.168.210.200"
  mac_address    = "00:50:56:00:00:aa"
  lease_time     = 3600
  dns_servers    = ["192.168.210.1"]

  dhcp_v4_config {
    gateway_ip_address = "192.168.210.1"
    hostname           = "printer"
  }
}
