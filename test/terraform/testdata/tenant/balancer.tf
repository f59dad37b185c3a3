# SPDX-License-Identifier: Apache-2.0

data "vcd_nsxt_alb_edgegateway_service_engine_group" "engines" {
  for_each                  = local.gateways
  edge_gateway_id           = data.vcd_nsxt_edgegateway.gateway[each.key].id
  service_engine_group_name = "engines"
}

resource "vcd_library_certificate" "web" {
  alias       = "tf-web"
  description = "Web servers, revision ${var.revision}"
  certificate = file("${var.files}/cert.pem")
  private_key = file("${var.files}/key.pem")
}

resource "vcd_nsxt_alb_pool" "web" {
  for_each                   = local.gateways
  edge_gateway_id            = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name                       = "tf-web"
  description                = "Web servers, revision ${var.revision}"
  algorithm                  = "ROUND_ROBIN"
  default_port               = 8080
  graceful_timeout_period    = 5 * var.revision
  passive_monitoring_enabled = false

  health_monitor {
    type = "TCP"
  }
  member {
    ip_address = "192.168.210.10"
    ratio      = var.revision
  }
  member {
    ip_address = "192.168.210.11"
    port       = 8081
    enabled    = var.revision > 1
  }
}

resource "vcd_nsxt_alb_pool" "set" {
  for_each        = local.gateways
  edge_gateway_id = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name            = "tf-set"
  member_group_id = vcd_nsxt_ip_set.office[each.key].id
  enabled         = var.revision == 1

  persistence_profile {
    type = "CLIENT_IP"
  }
}

resource "vcd_nsxt_alb_virtual_service" "web" {
  for_each                 = local.gateways
  edge_gateway_id          = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name                     = "tf-web"
  description              = "Web, revision ${var.revision}"
  pool_id                  = vcd_nsxt_alb_pool.web[each.key].id
  service_engine_group_id  = data.vcd_nsxt_alb_edgegateway_service_engine_group.engines[each.key].service_engine_group_id
  virtual_ip_address       = local.addresses[each.key].service
  application_profile_type = "HTTPS"
  ca_certificate_id        = vcd_library_certificate.web.id

  service_port {
    start_port  = 443
    type        = "TCP_PROXY"
    ssl_enabled = true
  }
}

resource "vcd_nsxt_alb_virtual_service" "tcp" {
  for_each                 = local.gateways
  edge_gateway_id          = data.vcd_nsxt_edgegateway.gateway[each.key].id
  name                     = "tf-tcp"
  pool_id                  = vcd_nsxt_alb_pool.set[each.key].id
  service_engine_group_id  = data.vcd_nsxt_alb_edgegateway_service_engine_group.engines[each.key].service_engine_group_id
  virtual_ip_address       = local.addresses[each.key].service
  application_profile_type = "L4"

  service_port {
    start_port = 6443
    type       = "TCP_PROXY"
  }
  service_port {
    start_port = 7000
    end_port   = 7000 + var.revision
    type       = "TCP_PROXY"
  }
}

resource "vcd_nsxt_alb_virtual_service_http_req_rules" "web" {
  for_each           = local.gateways
  virtual_service_id = vcd_nsxt_alb_virtual_service.web[each.key].id

  rule {
    name   = "tf-moved"
    active = true
    match_criteria {
      path {
        criteria = "BEGINS_WITH"
        paths    = ["/old-${var.revision}"]
      }
    }
    actions {
      redirect {
        protocol    = "HTTPS"
        port        = 443
        status_code = 302
        host        = "www.acme.example"
        path        = "/new"
        keep_query  = true
      }
    }
  }
}

resource "vcd_nsxt_alb_virtual_service_http_resp_rules" "web" {
  for_each           = local.gateways
  virtual_service_id = vcd_nsxt_alb_virtual_service.web[each.key].id

  rule {
    name   = "tf-header"
    active = true
    match_criteria {
      status_code {
        criteria         = "IS_IN"
        http_status_code = "200"
      }
    }
    actions {
      modify_header {
        action = "ADD"
        name   = "X-Revision"
        value  = tostring(var.revision)
      }
    }
  }
}

resource "vcd_nsxt_alb_virtual_service_http_sec_rules" "web" {
  for_each           = local.gateways
  virtual_service_id = vcd_nsxt_alb_virtual_service.web[each.key].id

  rule {
    name   = "tf-admin"
    active = true
    match_criteria {
      path {
        criteria = "BEGINS_WITH"
        paths    = ["/admin-${var.revision}"]
      }
    }
    actions {
      connections = "CLOSE"
    }
  }
}
