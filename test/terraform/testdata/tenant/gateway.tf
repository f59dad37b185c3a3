# SPDX-License-Identifier: Apache-2.0

resource "vcd_nsxt_ip_set" "office" {
  for_each        = local.gateways
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name            = "tf-office"
  description     = "Offices, revision ${var.revision}"
  ip_addresses    = var.revision > 1 ? ["198.51.100.0/24", "192.0.2.7"] : ["198.51.100.0/24"]
}

resource "vcd_nsxt_security_group" "app" {
  for_each               = local.gateways
  edge_gateway_id        = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name                   = "tf-app"
  description            = "Networks of applications, revision ${var.revision}"
  member_org_network_ids = [vcd_network_routed_v2.app[each.key].id]
}

resource "vcd_nsxt_app_port_profile" "web" {
  for_each    = local.gateways
  context_id  = local.owners[each.key]
  name        = "tf-web"
  description = "Web servers, revision ${var.revision}"
  scope       = "TENANT"

  app_port {
    protocol = "TCP"
    port     = var.revision > 1 ? ["8080", "8443", "9000-9010"] : ["8080", "8443"]
  }
}

resource "vcd_nsxt_firewall" "gateway" {
  for_each        = local.gateways
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id

  rule {
    action               = "ALLOW"
    name                 = "tf-office"
    direction            = "IN"
    ip_protocol          = "IPV4"
    source_ids           = [vcd_nsxt_ip_set.office[each.key].id]
    destination_ids      = [vcd_nsxt_security_group.app[each.key].id]
    app_port_profile_ids = [vcd_nsxt_app_port_profile.web[each.key].id]
    logging              = var.revision > 1
  }
  rule {
    action      = "ALLOW"
    name        = "tf-out"
    direction   = "OUT"
    ip_protocol = "IPV4_IPV6"
    source_ids  = [vcd_nsxt_security_group.app[each.key].id]
  }
}

resource "vcd_nsxt_nat_rule" "out" {
  for_each         = local.gateways
  edge_gateway_id  = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name             = "tf-out"
  description      = "From applications to outside, revision ${var.revision}"
  rule_type        = "SNAT"
  external_address = local.addresses[each.key].inbound
  internal_address = "192.168.210.0/24"
  logging          = var.revision > 1
}

resource "vcd_nsxt_nat_rule" "in" {
  for_each            = local.gateways
  edge_gateway_id     = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name                = "tf-in"
  rule_type           = "DNAT"
  external_address    = local.addresses[each.key].inbound
  dnat_external_port  = 8000 + var.revision
  internal_address    = "192.168.210.10"
  app_port_profile_id = vcd_nsxt_app_port_profile.web[each.key].id
  priority            = 10
}

resource "vcd_nsxt_edgegateway_static_route" "lab" {
  for_each        = local.gateways
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name            = "tf-lab"
  description     = "Laboratory, revision ${var.revision}"
  network_cidr    = "192.168.220.0/24"

  next_hop {
    ip_address     = "192.168.210.254"
    admin_distance = var.revision
    scope {
      id   = vcd_network_routed_v2.app[each.key].id
      type = "NETWORK"
    }
  }
}

resource "vcd_nsxt_edgegateway_dns" "gateway" {
  for_each        = local.gateways
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id
  enabled         = true

  default_forwarder_zone {
    name             = "tf-default"
    upstream_servers = var.revision > 1 ? ["198.51.100.53", "198.51.100.54"] : ["198.51.100.53"]
  }
  conditional_forwarder_zone {
    name             = "tf-office"
    upstream_servers = ["198.51.100.53"]
    domain_names     = ["office.example"]
  }
}

resource "vcd_nsxt_dynamic_security_group" "tagged" {
  for_each     = local.groups
  vdc_group_id = data.vcd_vdc_group.group[each.key].id
  name         = "tf-tagged"
  description  = "VMs with a tag, revision ${var.revision}"

  criteria {
    rule {
      type     = "VM_TAG"
      operator = "EQUALS"
      value    = "tf-web-${var.revision}"
    }
    rule {
      type     = "VM_NAME"
      operator = "STARTS_WITH"
      value    = "tf-"
    }
  }
}

resource "vcd_nsxt_edgegateway_dhcpv6" "gateway" {
  for_each        = local.gateways
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id
  mode            = "SLAAC"
  domain_names    = ["app.example"]
  dns_servers     = var.revision > 1 ? ["2001:db8::53", "2001:db8::54"] : ["2001:db8::53"]
}

resource "vcd_nsxt_edgegateway_dhcp_forwarding" "gateway" {
  for_each        = local.gateways
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id
  enabled         = true
  dhcp_servers    = var.revision > 1 ? ["198.51.100.67", "198.51.100.68"] : ["198.51.100.67"]
}

resource "vcd_nsxt_distributed_firewall" "group" {
  for_each     = local.groups
  vdc_group_id = data.vcd_vdc_group.group[each.key].id

  rule {
    name        = "tf-tagged"
    action      = "ALLOW"
    direction   = "IN"
    ip_protocol = "IPV4"
    logging     = var.revision > 1
    source_ids  = [vcd_nsxt_dynamic_security_group.tagged[each.key].id]
  }
}
